"""Firing: each occurrence becomes one run or one record, whoever fires and however often (A3, A5, E2, G2)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from mainspring.core.model import HOUR, MINUTE, SECOND, JobState, Kind, RunFilter, SkippedOccurrence
from mainspring.core.states import State
from mainspring.ports.store import JobEdit, Store
from tests.contract.helpers import (
    T0,
    accept,
    add_run,
    cancel,
    cancelled,
    claim,
    claim_one,
    completed,
    delayed_job,
    fire_at,
    firing,
    given_job,
    given_recurring_job,
    given_worker,
    new_id,
    occurrence,
    recurring_job,
    row_of,
    run_of,
    state_of,
    view_of,
)

FIRST = T0 + MINUTE
SECOND_ONE = T0 + 2 * MINUTE
THIRD = T0 + 3 * MINUTE
OVERLAPS = ("skip", "skip", "allow", "skip")


# --- what is due


async def test_due_are_the_jobs_whose_time_has_come_soonest_first(store: Store) -> None:
    late = await given_job(store, delayed_job(T0 + 3 * SECOND))
    soon = await given_job(store, delayed_job(T0 + SECOND))
    recurring = await given_job(store, recurring_job(first=T0 + 2 * SECOND))
    await given_job(store, delayed_job(T0 + HOUR))
    due = await store.due_jobs(None, until=T0 + 3 * SECOND)
    assert [job.id for job in due] == [soon, recurring, late]
    assert [job.id for job in await store.due_jobs(None, until=T0 + 3 * SECOND, limit=2)] == [soon, recurring]
    assert await store.due_jobs(None, until=T0) == []


async def test_due_jobs_are_whole_rows(store: Store) -> None:
    new = recurring_job(overlap="allow", key="k")
    await given_job(store, new)
    [job] = await store.due_jobs(None, until=T0 + HOUR)
    assert job == await row_of(store, new.id)
    assert (job.lane, job.kind, job.document, job.payload, job.key) == (
        new.lane,
        Kind.RECURRING,
        new.document,
        new.payload,
        "k",
    )


async def test_due_are_only_those_of_the_shards_asked(store: Store) -> None:
    ids = [await given_job(store, delayed_job(T0 + SECOND)) for _ in range(8)]
    shards = [ids[2].bytes[-1], ids[5].bytes[-1]]
    due = await store.due_jobs(shards, until=T0 + SECOND)
    assert {job.id for job in due} == {job_id for job_id in ids if job_id.bytes[-1] in shards}
    assert await store.due_jobs([], until=T0 + SECOND) == []


async def test_what_is_coming_is_read_on_from_where_one_left_off(store: Store) -> None:
    instants = [T0 + SECOND, T0 + 2 * SECOND, T0 + 2 * SECOND, T0 + 2 * SECOND, T0 + 3 * SECOND]
    due = sorted([(at, await given_job(store, delayed_job(at))) for at in instants])
    await given_job(store, delayed_job(T0 + HOUR))
    read: list[tuple[int, UUID]] = []
    while jobs := await store.coming_jobs(None, after=read[-1] if read else None, until=T0 + 3 * SECOND, limit=2):
        read += [(job.scheduled_at or 0, job.id) for job in jobs]
    assert read == due


async def test_what_is_coming_is_known_without_its_payload(store: Store) -> None:
    new = recurring_job(overlap="allow", key="k")
    await given_job(store, new)
    [job] = await store.coming_jobs(None, after=None, until=T0 + HOUR)
    assert job == replace(await row_of(store, new.id), payload=b"")


async def test_what_is_coming_is_told_of_the_shards_asked(store: Store) -> None:
    ids = [await given_job(store, delayed_job(T0 + SECOND)) for _ in range(8)]
    shards = [ids[2].bytes[-1], ids[5].bytes[-1]]
    coming = await store.coming_jobs(shards, after=None, until=T0 + SECOND)
    assert {job.id for job in coming} == {job_id for job_id in ids if job_id.bytes[-1] in shards}


async def test_recurring_jobs_move_on_together_and_those_with_a_live_run_by_their_rule(store: Store) -> None:
    idle, busy, allowing, stale = [await given_recurring_job(store, recurring_job(overlap=rule)) for rule in OVERLAPS]
    for job in (busy, allowing):
        await fire_at(store, job.id, FIRST)
    at = SECOND_ONE
    batch = [firing(job, at, following=THIRD) for job in (idle, busy, allowing)]
    fired = await store.fire([*batch, replace(firing(stale, at, following=THIRD), version=9)], now=at)
    assert [(one.applied, len(one.runs), one.skipped) for one in fired] == [
        (True, 1, 0), (True, 0, 1), (True, 1, 0), (False, 0, 0),
    ]  # fmt: skip
    rows = [await row_of(store, job.id) for job in (idle, busy, allowing, stale)]
    assert [(row.scheduled_at, row.fired_through, row.runs_made) for row in rows[:3]] == [
        (THIRD, at, 1), (THIRD, at, 1), (THIRD, at, 2),
    ]  # fmt: skip
    assert (rows[3].scheduled_at, rows[3].runs_made) == (FIRST, 0)


async def test_paused_cancelled_and_finished_jobs_are_never_due(store: Store) -> None:
    paused, stopped, finished = [await given_recurring_job(store) for _ in range(3)]
    await store.change(JobEdit(paused.id, 1, state=JobState.PAUSED, next_at=FIRST, next_scheduled_at=FIRST), now=T0)
    await cancel(store, stopped.id)
    await store.fire([firing(finished, FIRST, following=None)], now=FIRST)
    assert await store.due_jobs(None, until=T0 + HOUR) == []


# --- what firing makes


async def test_a_recurring_job_gets_its_run_and_moves_on_in_one(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(priority_hint=1))
    await given_worker(store)
    [fired] = await store.fire([firing(job, FIRST)], now=FIRST + SECOND)
    assert (fired.job_id, fired.applied, fired.skipped) == (job.id, True, 0)
    assert fired.runs == (occurrence(job.id, FIRST),)

    run = await run_of(store, fired.runs[0])
    assert (run.job_id, run.state, run.kind, run.origin) == (job.id, State.QUEUED, Kind.RECURRING, "schedule")
    assert (run.scheduled_at, run.ready_at, run.created_at) == (FIRST, FIRST + SECOND, T0)
    assert (run.lane, run.priority, run.payload, run.document) == (job.lane, job.priority, job.payload, job.document)
    assert (run.catch_up, run.stands_for_job, run.key) == (False, False, None)

    view = await view_of(store, job.id)
    moved = view.job
    assert (moved.fired_through, moved.next_at, moved.scheduled_at) == (FIRST, SECOND_ONE, SECOND_ONE)
    assert (moved.runs_made, moved.version, moved.state) == (1, 1, JobState.ACTIVE)
    assert view.last_run is not None
    assert (view.status, view.last_run.id) == ("active", run.id)


async def test_a_delayed_job_becomes_its_run(store: Store) -> None:
    worker = await given_worker(store)
    new = delayed_job(FIRST, key="k")
    await given_job(store, new)
    [run_id] = await fire_at(store, new.id, FIRST)
    assert run_id == occurrence(new.id, FIRST)
    run = await run_of(store, run_id)
    assert (run.job_id, run.kind, run.key, run.stands_for_job) == (new.id, Kind.DELAYED, "k", True)
    assert await store.due_jobs(None, until=T0 + HOUR) == []
    view = await view_of(store, new.id)
    assert (view.status, view.job.id, view.job.key, view.job.created_at) == ("queued", new.id, "k", T0)
    await accept(store, worker, completed(await claim_one(store, worker, now=FIRST)), now=FIRST)
    assert (await view_of(store, new.id)).status == "completed"


async def test_a_delayed_job_whose_time_lay_in_the_past_fires_too(store: Store) -> None:
    """A1."""
    await given_worker(store)
    new = delayed_job(T0 - HOUR)
    await given_job(store, new)
    [run_id] = await fire_at(store, new.id, T0 - HOUR, now=T0)
    run = await run_of(store, run_id)
    assert (run.state, run.scheduled_at, run.ready_at) == (State.QUEUED, T0 - HOUR, T0)


async def test_a_jittered_occurrence_is_ready_at_its_later_instant(store: Store) -> None:
    """A5."""
    job = await given_recurring_job(store)
    plan = firing(job, FIRST)
    plan = replace(plan, runs=(plan.runs[0]._replace(scheduled_at=FIRST + 7 * SECOND),))
    [fired] = await store.fire([plan], now=FIRST)
    run = await run_of(store, fired.runs[0])
    assert (run.id, run.scheduled_at, run.ready_at) == (
        occurrence(job.id, FIRST),
        FIRST + 7 * SECOND,
        FIRST + 7 * SECOND,
    )


async def test_the_last_occurrence_finishes_the_job(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(key="k"))
    await store.fire([firing(job, FIRST, following=None)], now=FIRST)
    view = await view_of(store, job.id)
    assert (view.status, view.job.next_at) == ("finished", None)
    assert await store.find_key("k") is None


async def test_runs_expire_by_the_policy_of_their_job(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(expires_in="30s"))
    [run_id] = await fire_at(store, job.id, FIRST)
    assert (await run_of(store, run_id)).expires_at == FIRST + 30 * SECOND


async def test_many_jobs_fire_in_one_batch(store: Store) -> None:
    worker = await given_worker(store)
    jobs = [recurring_job() for _ in range(300)]
    await store.submit(jobs, now=T0)
    due = await store.due_jobs(None, until=FIRST)
    fired = await store.fire([firing(job, FIRST) for job in due], now=FIRST)
    assert [one.job_id for one in fired] == [job.id for job in due]
    assert all(one.applied and len(one.runs) == 1 for one in fired)
    assert len(await claim(store, worker, limit=400, now=FIRST)) == 300


# --- records


async def test_a_skipped_occurrence_is_a_record_with_its_reason_and_count(store: Store) -> None:
    """A3."""
    job = await given_recurring_job(store)
    skip = SkippedOccurrence(FIRST, FIRST, "misfire", 3)
    [fired] = await store.fire([firing(job, T0 + 4 * MINUTE, skips=[skip])], now=T0 + 4 * MINUTE)
    assert (fired.applied, len(fired.runs), fired.skipped) == (True, 1, 1)
    record = await run_of(store, occurrence(job.id, FIRST))
    assert (record.state, record.reason, record.count, record.attempt) == (State.SKIPPED, "misfire", 3, 0)
    assert (record.job_id, record.scheduled_at, record.finished_at) == (job.id, FIRST, T0 + 4 * MINUTE)
    listed = await store.list_runs(RunFilter(job_id=job.id))
    assert [run.id for run in listed] == [*fired.runs, record.id]
    row = await row_of(store, job.id)
    assert (row.fired_through, row.runs_made) == (T0 + 4 * MINUTE, 1)


async def test_a_firing_of_records_only_moves_the_job_on(store: Store) -> None:
    job = await given_recurring_job(store)
    skip = SkippedOccurrence(FIRST, FIRST, "calendar")
    [fired] = await store.fire([firing(job, skips=[skip])], now=FIRST)
    assert (fired.applied, fired.runs, fired.skipped) == (True, (), 1)
    row = await row_of(store, job.id)
    assert (row.fired_through, row.next_at, row.runs_made) == (FIRST, SECOND_ONE, 0)


# --- guards


async def test_a_second_firing_of_the_same_occurrence_changes_nothing(store: Store) -> None:
    """A3."""
    job = await given_recurring_job(store)
    plan = firing(job, FIRST)
    assert [one.applied for one in await store.fire([plan], now=FIRST)] == [True]
    before = await row_of(store, job.id)
    [again] = await store.fire([plan], now=FIRST)
    assert (again.applied, again.runs, again.skipped) == (False, (), 0)
    assert await row_of(store, job.id) == before
    assert len(await store.list_runs(RunFilter(job_id=job.id))) == 1


async def test_the_same_firing_twice_in_one_batch_counts_once(store: Store) -> None:
    job = await given_recurring_job(store)
    fired = await store.fire([firing(job, FIRST), firing(job, FIRST)], now=FIRST)
    assert sorted(one.applied for one in fired) == [False, True]
    assert (await row_of(store, job.id)).runs_made == 1


async def test_a_firing_is_refused_whole_where_one_of_its_instants_was_fired(store: Store) -> None:
    job = await given_recurring_job(store)
    await fire_at(store, job.id, FIRST)
    [fired] = await store.fire([firing(job, FIRST, SECOND_ONE)], now=SECOND_ONE)
    assert not fired.applied
    assert (await row_of(store, job.id)).fired_through == FIRST


async def test_a_firing_by_an_older_definition_is_refused(store: Store) -> None:
    job = await given_recurring_job(store)
    edited = await store.change(JobEdit(job.id, 1, priority=80, next_at=FIRST, next_scheduled_at=FIRST), now=T0)
    assert edited is not None
    [stale] = await store.fire([firing(job, FIRST)], now=FIRST)
    assert not stale.applied
    [fired] = await store.fire([firing(edited, FIRST)], now=FIRST)
    assert fired.applied


async def test_jobs_that_are_gone_paused_or_cancelled_do_not_fire(store: Store) -> None:
    paused, stopped = await given_recurring_job(store), await given_recurring_job(store)
    held = await store.change(
        JobEdit(paused.id, 1, state=JobState.PAUSED, next_at=FIRST, next_scheduled_at=FIRST), now=T0
    )
    assert held is not None
    await cancel(store, stopped.id)
    unknown = replace(stopped, id=new_id())
    plans = [firing(held, FIRST), firing(await row_of(store, stopped.id), FIRST), firing(unknown, FIRST)]
    assert [one.applied for one in await store.fire(plans, now=FIRST)] == [False, False, False]
    assert await store.list_runs(RunFilter()) == []


async def test_a_one_time_job_fires_once(store: Store) -> None:
    new = delayed_job(FIRST)
    await given_job(store, new)
    plan = firing(await row_of(store, new.id), FIRST)
    assert [one.applied for one in await store.fire([plan], now=FIRST)] == [True]
    assert [one.applied for one in await store.fire([plan], now=FIRST)] == [False]


async def test_fired_through_never_goes_back(store: Store) -> None:
    """G2."""
    job = await given_recurring_job(store)
    await fire_at(store, job.id, FIRST, SECOND_ONE, THIRD)
    row = await row_of(store, job.id)
    plan = replace(firing(row, T0 + 4 * MINUTE), fired_through=FIRST)
    await store.fire([plan], now=T0 + 4 * MINUTE)
    assert (await row_of(store, job.id)).fired_through == T0 + 4 * MINUTE
    edited = await store.change(
        JobEdit(job.id, 1, next_at=T0 + HOUR, next_scheduled_at=T0 + HOUR, fired_through=FIRST), now=T0
    )
    assert edited is not None
    assert edited.fired_through == T0 + 4 * MINUTE


async def test_two_schedulers_fire_each_occurrence_once(store: Store, other: Store) -> None:
    """A3: any number may try, one succeeds."""
    jobs = [recurring_job() for _ in range(40)]
    await store.submit(jobs, now=T0)
    due = await store.due_jobs(None, until=FIRST)
    plans = [firing(job, FIRST) for job in due]
    mine, theirs = await asyncio.gather(store.fire(plans, now=FIRST), other.fire(list(reversed(plans)), now=FIRST))
    applied = [one.job_id for one in (*mine, *theirs) if one.applied]
    assert sorted(applied) == sorted(job.id for job in due)
    assert len(await store.list_runs(RunFilter(), limit=100)) == 40
    assert {(await row_of(store, job.id)).runs_made for job in due} == {1}


# --- overlap


async def test_skip_records_the_occurrence_while_a_run_is_live(store: Store) -> None:
    """E2."""
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="skip"))
    await fire_at(store, job.id, FIRST)
    running = await claim_one(store, worker, now=FIRST)
    [fired] = await store.fire([firing(await row_of(store, job.id), SECOND_ONE)], now=SECOND_ONE)
    assert (fired.applied, fired.runs, fired.skipped) == (True, (), 1)
    record = await run_of(store, occurrence(job.id, SECOND_ONE))
    assert (record.state, record.reason) == (State.SKIPPED, "overlap")
    await accept(store, worker, completed(running), now=SECOND_ONE)
    [run_id] = await fire_at(store, job.id, THIRD)
    assert await state_of(store, run_id) is State.QUEUED
    assert (await row_of(store, job.id)).runs_made == 2


async def test_allow_lets_them_run_beside_each_other(store: Store) -> None:
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="allow"))
    await fire_at(store, job.id, FIRST, SECOND_ONE)
    assert len(await claim(store, worker, now=SECOND_ONE)) == 2


async def test_queue_one_holds_one_and_skips_the_rest(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="queue_one"))
    await given_worker(store)
    runs = await fire_at(store, job.id, FIRST, SECOND_ONE, THIRD)
    assert [await state_of(store, run_id) for run_id in runs] == [State.QUEUED, State.HELD]
    assert (await run_of(store, runs[1])).reason == "overlap"
    assert await state_of(store, occurrence(job.id, THIRD)) is State.SKIPPED


async def test_queue_all_holds_them_all(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="queue_all"))
    await given_worker(store)
    runs = await fire_at(store, job.id, FIRST, SECOND_ONE, THIRD)
    assert [await state_of(store, run_id) for run_id in runs] == [State.QUEUED, State.HELD, State.HELD]


async def test_cancel_ends_the_waiting_at_once_and_starts_the_new_one(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="cancel"))
    await given_worker(store)
    [old] = await fire_at(store, job.id, FIRST)
    [new] = await fire_at(store, job.id, SECOND_ONE)
    assert await state_of(store, old) is State.CANCELLED
    assert await state_of(store, new) is State.QUEUED


async def test_cancel_asks_the_running_one_and_holds_the_new_until_it_has_ended(store: Store) -> None:
    """E2: the old one has ended before the new one starts."""
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="cancel"))
    await fire_at(store, job.id, FIRST)
    running = await claim_one(store, worker, now=FIRST)
    [second] = await fire_at(store, job.id, SECOND_ONE)
    assert (await run_of(store, running.id)).cancel_requested_at == SECOND_ONE
    assert await state_of(store, second) is State.HELD
    [third] = await fire_at(store, job.id, THIRD)
    assert await state_of(store, second) is State.CANCELLED
    await accept(store, worker, cancelled(running), now=THIRD)
    assert await state_of(store, third) is State.QUEUED


async def test_runs_of_a_catch_up_follow_one_another(store: Store) -> None:
    """E2, E4: whatever the rule, unless it allows overlap."""
    job = await given_recurring_job(store, recurring_job(overlap="skip"))
    await given_worker(store)
    [fired] = await store.fire([firing(job, FIRST, SECOND_ONE, THIRD, catch_up=True)], now=THIRD)
    assert [await state_of(store, run_id) for run_id in fired.runs] == [State.QUEUED, State.HELD, State.HELD]
    assert {(await run_of(store, run_id)).catch_up for run_id in fired.runs} == {True}


async def test_a_run_beside_the_schedule_counts_for_overlap(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="skip"))
    await add_run(store, job.id)
    [fired] = await store.fire([firing(job, FIRST)], now=FIRST)
    assert (fired.runs, fired.skipped) == ((), 1)


@pytest.mark.parametrize("rule", ["skip", "queue_one", "queue_all", "cancel", "allow"])
async def test_each_instant_is_accounted_for_under_every_rule(store: Store, rule: str) -> None:
    """A3: conservation."""
    job = await given_recurring_job(store, recurring_job(overlap=rule))
    instants = [T0 + number * MINUTE for number in range(1, 7)]
    await fire_at(store, job.id, *instants[:3])
    await fire_at(store, job.id, *instants[3:])
    records = await store.list_runs(RunFilter(job_id=job.id))
    assert sorted(run.scheduled_at for run in records) == instants


# --- expiry


async def test_what_was_not_started_by_its_time_is_skipped(store: Store) -> None:
    worker = await given_worker(store)
    new = delayed_job(FIRST, key="k")
    await given_job(store, replace(new, expires_at=FIRST + SECOND))
    [run_id] = await fire_at(store, new.id, FIRST)
    assert await store.expire(now=FIRST + SECOND - 1) == 0
    assert await store.expire(now=FIRST + SECOND) == 1
    run = await run_of(store, run_id)
    assert (run.state, run.reason, run.finished_at, run.attempt) == (State.SKIPPED, "expired", FIRST + SECOND, 0)
    assert await claim(store, worker, now=FIRST + SECOND) == []
    assert await store.find_key("k") is None
    assert (await view_of(store, new.id)).status == "skipped"
    assert await store.expire(now=T0 + HOUR) == 0


async def test_what_waits_for_a_worker_or_for_overlap_expires_too(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="queue_all", expires_in="10s"))
    runs = await fire_at(store, job.id, FIRST, FIRST + SECOND)
    assert [await state_of(store, run_id) for run_id in runs] == [State.HELD, State.HELD]
    assert await store.expire(now=FIRST + 20 * SECOND) == 2
    assert [await state_of(store, run_id) for run_id in runs] == [State.SKIPPED, State.SKIPPED]


async def test_what_was_started_in_time_does_not_expire_when_it_comes_back(store: Store) -> None:
    worker = await given_worker(store)
    new = delayed_job(FIRST)
    await given_job(store, replace(new, expires_at=FIRST + SECOND))
    await fire_at(store, new.id, FIRST)
    claimed = await claim_one(store, worker, now=FIRST)
    await store.deregister(worker, now=FIRST)
    await store.rescue(now=FIRST)
    assert await store.expire(now=T0 + HOUR) == 0
    heir = await given_worker(store)
    assert (await claim_one(store, heir, now=T0 + HOUR)).id == claimed.id
