"""Edits, pause and resume: by version, never making misfires, never losing what was due (A3, D4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack
from uuid import UUID

import pytest

from mainspring.core.errors import KeyTaken, NotFound
from mainspring.core.model import HOUR, MINUTE, SECOND, Firing, Instant, Job, JobState, SkippedOccurrence
from mainspring.core.states import State
from mainspring.ports.store import JobEdit, Store
from tests.contract.helpers import (
    T0,
    claim,
    delayed_job,
    fire_at,
    firing,
    given_job,
    given_recurring_job,
    given_worker,
    immediate_job,
    lane,
    new_id,
    occurrence,
    recurring_job,
    row_of,
    run_of,
    view_of,
)

FIRST = T0 + MINUTE
NOW = T0 + 30 * SECOND


class Fields(TypedDict, total=False):
    state: JobState
    priority: int
    document: str
    key: str
    next_at: Instant
    next_scheduled_at: Instant
    fired_through: Instant
    firing: Firing


def edit(job: Job, **fields: Unpack[Fields]) -> JobEdit:
    """Keeps what comes next unless the fields say otherwise."""
    kept = JobEdit(job.id, job.version, next_at=job.next_at, next_scheduled_at=job.scheduled_at)
    return replace(kept, **fields)


async def changed(store: Store, change: JobEdit, *, now: int = NOW) -> Job:
    job = await store.change(change, now=now)
    assert job is not None
    assert await row_of(store, job.id) == job
    return job


async def test_an_edit_raises_the_version_and_changes_what_it_names(store: Store) -> None:
    job = await given_recurring_job(store)
    edited = await changed(
        store,
        JobEdit(
            job.id,
            1,
            lane=lane("other", "mail"),
            priority=90,
            payload=b'{"b":2}',
            document='{"every":120}',
            key="k",
            next_at=T0 + HOUR,
            next_scheduled_at=T0 + HOUR + SECOND,
            fired_through=NOW,
            definition_changed=True,
        ),
    )
    assert (edited.version, edited.updated_at, edited.created_at) == (2, NOW, T0)
    assert (edited.lane, edited.priority, edited.payload, edited.document) == (
        lane("other", "mail"),
        90,
        b'{"b":2}',
        '{"every":120}',
    )
    assert (edited.next_at, edited.scheduled_at, edited.fired_through) == (T0 + HOUR, T0 + HOUR + SECOND, NOW)
    assert await store.find_key("k") == job.id
    assert await store.due_jobs(None, until=FIRST) == []


async def test_an_edit_leaves_alone_what_it_does_not_name(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(key="k", name="n"))
    edited = await changed(store, edit(job, priority=1))
    assert replace(edited, version=1, priority=job.priority, updated_at=job.updated_at) == job


async def test_an_older_version_changes_nothing(store: Store) -> None:
    job = await given_recurring_job(store)
    current = await changed(store, edit(job, priority=1))
    assert await store.change(edit(job, priority=2), now=NOW) is None
    assert await row_of(store, job.id) == current


async def test_an_unknown_job_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.change(JobEdit(new_id(), 1), now=NOW)


async def test_a_job_that_has_become_a_run_takes_no_edit(store: Store) -> None:
    new = delayed_job(FIRST)
    await given_job(store, new)
    job = await row_of(store, new.id)
    await fire_at(store, new.id, FIRST)
    assert await store.change(edit(job, priority=1), now=FIRST) is None


async def test_a_key_of_another_live_job_is_refused(store: Store) -> None:
    holder = await given_job(store, immediate_job(key="k"))
    job = await given_recurring_job(store)
    with pytest.raises(KeyTaken) as refusal:
        await store.change(edit(job, key="k"), now=NOW)
    assert UUID(refusal.value.holder) == holder
    assert (await row_of(store, job.id)).version == 1


async def test_a_new_key_frees_the_old_one(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(key="old"))
    await changed(store, edit(job, key="new"))
    assert (await store.find_key("old"), await store.find_key("new")) == (None, job.id)


async def test_a_delayed_job_moves_to_its_new_time(store: Store) -> None:
    new = delayed_job(T0 + HOUR)
    await given_job(store, new)
    job = await row_of(store, new.id)
    moved = await changed(store, edit(job, next_at=FIRST, next_scheduled_at=FIRST))
    assert [due.id for due in await store.due_jobs(None, until=FIRST)] == [job.id]
    [fired] = await store.fire([firing(moved, FIRST)], now=FIRST)
    assert fired.applied


async def test_a_delayed_job_moved_into_the_past_fires_at_once(store: Store) -> None:
    """A1."""
    new = delayed_job(T0 + HOUR)
    await given_job(store, new)
    past = T0 - HOUR
    moved = await changed(store, edit(await row_of(store, new.id), next_at=past, next_scheduled_at=past))
    [fired] = await store.fire([firing(moved, past)], now=NOW)
    assert fired.applied


async def test_what_was_due_by_the_old_definition_fires_with_the_edit(store: Store) -> None:
    """A3: an edit loses no occurrence that was due before it."""
    await given_worker(store)
    job = await given_recurring_job(store)
    now = FIRST + SECOND
    edited = await changed(
        store,
        edit(
            job,
            document='{"every":3600}',
            next_at=T0 + HOUR,
            next_scheduled_at=T0 + HOUR,
            fired_through=now,
            firing=firing(job, FIRST),
        ),
        now=now,
    )
    assert (edited.fired_through, edited.next_at, edited.version, edited.runs_made) == (now, T0 + HOUR, 2, 1)
    run = await run_of(store, occurrence(job.id, FIRST))
    assert (run.state, run.document) == (State.QUEUED, job.document)


async def test_an_edit_that_somebody_elses_firing_overtook_is_refused_whole(store: Store) -> None:
    """A3: it decided about occurrences that are decided already; it must be made anew."""
    job = await given_recurring_job(store)
    now = T0 + 2 * MINUTE
    overtaken = edit(
        job,
        priority=1,
        next_at=T0 + HOUR,
        next_scheduled_at=T0 + HOUR,
        fired_through=now,
        firing=firing(job, FIRST, T0 + 2 * MINUTE),
    )
    await fire_at(store, job.id, FIRST)
    before = await row_of(store, job.id)
    assert await store.change(overtaken, now=now) is None
    assert await row_of(store, job.id) == before
    assert await store.runs([occurrence(job.id, T0 + 2 * MINUTE)]) == [None]


async def test_an_edit_whose_next_instant_was_fired_meanwhile_is_refused(store: Store) -> None:
    job = await given_recurring_job(store)
    await fire_at(store, job.id, FIRST)
    assert await store.change(edit(job, priority=1), now=FIRST) is None
    assert (await row_of(store, job.id)).next_at == T0 + 2 * MINUTE


class TestPause:
    """D4."""

    async def test_a_paused_job_is_not_due_and_says_since_when(self, store: Store) -> None:
        job = await given_recurring_job(store)
        paused = await changed(store, edit(job, state=JobState.PAUSED))
        assert (paused.state, paused.paused_at) == (JobState.PAUSED, NOW)
        assert (await view_of(store, job.id)).status == "paused"
        assert await store.due_jobs(None, until=T0 + HOUR) == []

    async def test_a_resume_records_what_fell_due_and_goes_on(self, store: Store) -> None:
        job = await given_recurring_job(store)
        paused = await changed(store, edit(job, state=JobState.PAUSED))
        now = T0 + 3 * MINUTE + SECOND
        following = T0 + 4 * MINUTE
        skip = SkippedOccurrence(FIRST, FIRST, "paused", 3)
        resumed = await changed(
            store,
            edit(
                paused,
                state=JobState.ACTIVE,
                next_at=following,
                next_scheduled_at=following,
                fired_through=now,
                firing=firing(paused, skips=[skip]),
            ),
            now=now,
        )
        assert (resumed.state, resumed.paused_at, resumed.fired_through) == (JobState.ACTIVE, None, now)
        record = await run_of(store, occurrence(job.id, FIRST))
        assert (record.state, record.reason, record.count) == (State.SKIPPED, "paused", 3)
        assert [due.id for due in await store.due_jobs(None, until=following)] == [job.id]

    async def test_a_resume_can_catch_up(self, store: Store) -> None:
        worker = await given_worker(store)
        job = await given_recurring_job(store)
        paused = await changed(store, edit(job, state=JobState.PAUSED))
        now = T0 + 2 * MINUTE
        following = T0 + 3 * MINUTE
        plan = firing(paused, FIRST, T0 + 2 * MINUTE, catch_up=True)
        await changed(
            store,
            edit(
                paused,
                state=JobState.ACTIVE,
                next_at=following,
                next_scheduled_at=following,
                fired_through=now,
                firing=plan,
            ),
            now=now,
        )
        [claimed] = await claim(store, worker, now=now)
        assert (claimed.id, claimed.catch_up) == (occurrence(job.id, FIRST), True)

    async def test_a_paused_one_time_job_runs_at_resume(self, store: Store) -> None:
        new = delayed_job(FIRST)
        await given_job(store, new)
        paused = await changed(store, edit(await row_of(store, new.id), state=JobState.PAUSED))
        assert await store.due_jobs(None, until=T0 + HOUR) == []
        resumed = await changed(store, edit(paused, state=JobState.SCHEDULED), now=T0 + HOUR)
        assert [due.id for due in await store.due_jobs(None, until=T0 + HOUR)] == [new.id]
        [fired] = await store.fire([firing(resumed, FIRST)], now=T0 + HOUR)
        assert fired.applied

    async def test_a_run_that_is_out_already_is_not_called_back(self, store: Store) -> None:
        worker = await given_worker(store)
        job = await given_recurring_job(store)
        [run_id] = await fire_at(store, job.id, FIRST)
        await changed(store, edit(await row_of(store, job.id), state=JobState.PAUSED), now=FIRST)
        assert [one.id for one in await claim(store, worker, now=FIRST)] == [run_id]
