"""Lists: newest first, by keyset, with every filter; what readers get are copies."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from mainspring.core.model import HOUR, MINUTE, SECOND, JobFilter, Kind, RunFilter, SkippedOccurrence
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    T0,
    accept,
    add_run,
    cancel,
    claim_one,
    completed,
    delayed_job,
    failed,
    fire_at,
    firing,
    given_completed_run,
    given_failed_run,
    given_job,
    given_recurring_job,
    given_retrying_run,
    given_run_held_for_overlap,
    given_running_run,
    given_unknown_run,
    given_worker,
    immediate_job,
    new_id,
    recurring_job,
    row_of,
    run_of,
    view_of,
)


async def job_ids(store: Store, where: JobFilter, *, after: UUID | None = None, limit: int = 50) -> list[UUID]:
    return [view.job.id for view in await store.list_jobs(where, after=after, limit=limit)]


async def run_ids(store: Store, where: RunFilter, *, limit: int = 50) -> list[UUID]:
    return [run.id for run in await store.list_runs(where, limit=limit)]


# --- reading by id


async def test_answers_come_in_the_order_asked_with_none_for_the_unknown(store: Store) -> None:
    first, second = await given_job(store, immediate_job()), await given_job(store, delayed_job(T0 + HOUR))
    views = await store.jobs([second, new_id(), first])
    assert [None if view is None else view.job.id for view in views] == [second, None, first]
    runs = await store.runs([new_id(), first])
    assert [None if run is None else run.id for run in runs] == [None, first]
    assert await store.jobs([]) == []
    assert await store.runs([]) == []


async def test_what_a_reader_changes_changes_nothing_in_the_store(store: Store) -> None:
    run_id = await given_job(store, immediate_job(task="strange"))
    job = await given_recurring_job(store)
    run = await run_of(store, run_id)
    run.priority = 1
    run.state = State.COMPLETED
    job.priority = 1
    [worker] = [await given_worker(store)]
    [info] = await store.workers()
    info.slots = 99
    assert (await run_of(store, run_id)).priority == 50
    assert (await row_of(store, job.id)).priority == 50
    assert [seen.slots for seen in await store.workers() if seen.id == worker] == [10]


async def test_an_immediate_job_is_known_by_its_run(store: Store) -> None:
    worker = await given_worker(store)
    new = immediate_job(key="k", created_by="me", priority=60, name="n")
    await given_job(store, new)
    view = await view_of(store, new.id)
    job = view.job
    assert (job.id, job.lane, job.kind, job.priority, job.payload) == (new.id, new.lane, Kind.IMMEDIATE, 60, b"{}")
    assert (job.document, job.key, job.created_by, job.created_at) == ('{"name":"n"}', "k", "me", T0)
    assert (job.next_at, view.status) == (None, "queued")
    claimed = await claim_one(store, worker)
    assert (await view_of(store, new.id)).status == "running"
    await accept(store, worker, completed(claimed), now=T0 + SECOND)
    view = await view_of(store, new.id)
    assert view.last_run is not None
    assert (view.status, view.last_run.finished_at) == ("completed", T0 + SECOND)


async def test_the_reason_of_a_one_time_job_is_its_runs(store: Store) -> None:
    job_id = await given_job(store, immediate_job(task="strange"))
    view = await view_of(store, job_id)
    assert (view.status, view.reason) == ("held", "no_worker")


# --- lists of jobs


async def test_jobs_come_newest_first_whatever_their_kind(store: Store) -> None:
    _, ended = await given_completed_run(store)
    waiting = await given_job(store, delayed_job(T0 + HOUR))
    recurring = await given_job(store, recurring_job())
    live = await given_job(store, immediate_job())
    assert await job_ids(store, JobFilter()) == [live, recurring, waiting, ended]


async def test_pages_of_jobs_join_without_gap_or_overlap(store: Store) -> None:
    makers = (immediate_job, recurring_job, lambda: delayed_job(T0 + HOUR))
    ids = [await given_job(store, makers[number % 3]()) for number in range(11)]
    pages: list[UUID] = []
    after = None
    while page := await job_ids(store, JobFilter(), after=after, limit=4):
        assert len(page) <= 4
        pages += page
        after = page[-1]
    assert pages == ids[::-1]


async def test_runs_beside_the_schedule_are_no_jobs(store: Store) -> None:
    job = await given_recurring_job(store)
    await fire_at(store, job.id, T0 + MINUTE)
    _, old = await given_failed_run(store, immediate_job(task="x"))
    await add_run(store, old, "retry", replaces=old)
    assert await job_ids(store, JobFilter()) == [old, job.id]


async def test_jobs_are_filtered_by_each_field(store: Store) -> None:
    await given_worker(store)
    plain = await given_job(store, immediate_job())
    special = await given_job(
        store,
        immediate_job(
            task="send", queue="mail", key="k-1", created_by="me", region="eu", tags=["red", "blue"], name="Nightly"
        ),
    )
    later = await given_job(store, delayed_job(T0 + HOUR, tags=["red"]))
    recurring = await given_job(store, recurring_job(key="every-minute"))
    cases = [
        (JobFilter(kind=Kind.RECURRING), [recurring]),
        (JobFilter(kind=Kind.IMMEDIATE), [special, plain]),
        (JobFilter(task="send"), [special]),
        (JobFilter(queue="mail"), [special]),
        (JobFilter(key="k-1"), [special]),
        (JobFilter(created_by="me"), [special]),
        (JobFilter(region="eu"), [special]),
        (JobFilter(tag="red"), [later, special]),
        (JobFilter(tag="re"), []),
        (JobFilter(prefix="Night"), [special]),
        (JobFilter(prefix="every"), [recurring]),
        (JobFilter(prefix="sen"), [special]),
        (JobFilter(prefix="100%"), []),
        (JobFilter(prefix="k_1"), []),
        (JobFilter(next_before=T0 + HOUR), [recurring]),
        (JobFilter(next_before=T0 + HOUR + 1), [recurring, later]),
        (JobFilter(tag="red", kind=Kind.DELAYED), [later]),
        (JobFilter(namespace="other"), []),
    ]
    for where, expected in cases:
        assert await job_ids(store, where) == expected, where


async def test_jobs_are_filtered_by_when_they_were_created(store: Store) -> None:
    old = await given_job(store, immediate_job())
    new = await given_job(store, recurring_job(at=T0 + MINUTE), now=T0 + MINUTE)
    assert await job_ids(store, JobFilter(created_after=T0 + MINUTE)) == [new]
    assert await job_ids(store, JobFilter(created_before=T0 + MINUTE)) == [old]
    assert await job_ids(store, JobFilter(created_after=T0, created_before=T0 + HOUR)) == [new, old]


async def test_jobs_are_filtered_by_fields_of_their_payload(store: Store) -> None:
    first = await given_job(store, immediate_job(payload=b'{"customer":"42","urgent":true,"count":3}'))
    second = await given_job(store, immediate_job(payload=b'{"customer":"43","urgent":false,"count":3}'))
    assert await job_ids(store, JobFilter(payload=(("customer", "42"),))) == [first]
    assert await job_ids(store, JobFilter(payload=(("urgent", "true"),))) == [first]
    assert await job_ids(store, JobFilter(payload=(("count", "3"),))) == [second, first]
    assert await job_ids(store, JobFilter(payload=(("count", "3"), ("customer", "43")))) == [second]
    assert await job_ids(store, JobFilter(payload=(("missing", "x"),))) == []


async def test_jobs_are_filtered_by_the_word_users_see(store: Store) -> None:
    await given_worker(store)
    held = await given_job(store, immediate_job(task="strange"))
    waiting = await given_job(store, delayed_job(T0 + HOUR))
    active = await given_job(store, recurring_job())
    stopped = (await given_recurring_job(store)).id
    await cancel(store, stopped)
    _, unknown = await given_unknown_run(store)
    _, retrying = await given_retrying_run(store)
    _, failed_id = await given_failed_run(store)
    _, done = await given_completed_run(store)
    queued = await given_job(store, immediate_job(task="task"))
    by_word = {
        "held": [held],
        "scheduled": [waiting],
        "active": [active],
        "cancelled": [stopped],
        "unknown": [unknown],
        "retrying": [retrying],
        "failed": [failed_id],
        "completed": [done],
        "queued": [queued],
        "running": [],
        "paused": [],
    }
    for word, expected in by_word.items():
        assert await job_ids(store, JobFilter(status=(word,))) == expected, word
    assert await job_ids(store, JobFilter(status=("held", "active"))) == [active, held]


async def test_completed_one_time_jobs_are_left_out_once_they_are_old(store: Store) -> None:
    _, done = await given_completed_run(store)
    _, dead = await given_failed_run(store)
    waiting = await given_job(store, recurring_job())
    assert await job_ids(store, JobFilter(ended_since=T0)) == [waiting, dead, done]
    assert await job_ids(store, JobFilter(ended_since=T0 + 1)) == [waiting, dead]


# --- lists of runs


async def test_runs_come_newest_first_live_and_ended_alike(store: Store) -> None:
    _, first = await given_completed_run(store)
    second = await given_job(store, immediate_job(task="strange"))
    _, third = await given_failed_run(store)
    assert await run_ids(store, RunFilter()) == [third, second, first]


async def test_pages_of_runs_join_without_gap_or_overlap(store: Store) -> None:
    worker = await given_worker(store)
    ids = [await given_job(store, immediate_job()) for _ in range(11)]
    for _ in range(6):
        await accept(store, worker, completed(await claim_one(store, worker)))
    pages: list[UUID] = []
    where = RunFilter()
    while page := await run_ids(store, where, limit=4):
        pages += page
        where = replace(where, after_id=page[-1])
    assert pages == ids[::-1]


async def test_a_run_that_ends_between_two_pages_is_not_listed_twice(store: Store) -> None:
    worker = await given_worker(store)
    ids = [await given_job(store, immediate_job()) for _ in range(4)]
    first = await run_ids(store, RunFilter(), limit=2)
    await accept(store, worker, completed(await claim_one(store, worker)))
    second = await run_ids(store, RunFilter(after_id=first[-1]), limit=2)
    assert [*first, *second] == ids[::-1]


async def test_runs_are_filtered_by_each_field(store: Store) -> None:
    worker, ended = await given_completed_run(store, immediate_job(task="send", queue="mail", tags=["red"]))
    _, claimed = await given_running_run(store, worker, immediate_job(tags=["red", "blue"]))
    held = await given_job(store, immediate_job(task="strange"))
    _, broken = await given_failed_run(store, immediate_job(queue="web"))
    cases = [
        (RunFilter(task="send"), [ended]),
        (RunFilter(queue="web"), [broken]),
        (RunFilter(worker=worker), [claimed.id, ended]),
        (RunFilter(tag="red"), [claimed.id, ended]),
        (RunFilter(tag="blue"), [claimed.id]),
        (RunFilter(reason="no_worker"), [held]),
        (RunFilter(error="ValueError"), [broken]),
        (RunFilter(error="KeyError"), []),
        (RunFilter(job_id=held), [held]),
        (RunFilter(job_id=new_id()), []),
        (RunFilter(status=("completed",)), [ended]),
        (RunFilter(status=("running", "failed")), [broken, claimed.id]),
        (RunFilter(status=("held",)), [held]),
        (RunFilter(tag="red", status=("completed",)), [ended]),
        (RunFilter(namespace="other"), []),
    ]
    for where, expected in cases:
        assert await run_ids(store, where) == expected, where


async def test_runs_are_filtered_by_when_they_were_due(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="allow"))
    first, second, third = await fire_at(store, job.id, *(T0 + number * MINUTE for number in (1, 2, 3)))
    assert await run_ids(store, RunFilter(start=T0 + 2 * MINUTE)) == [third, second]
    assert await run_ids(store, RunFilter(end=T0 + 2 * MINUTE)) == [first]
    assert await run_ids(store, RunFilter(job_id=job.id, start=T0 + 2 * MINUTE, end=T0 + 3 * MINUTE)) == [second]


async def test_skipped_occurrences_are_listed_among_the_runs(store: Store) -> None:
    """A3: what should have happened has a record."""
    job = await given_recurring_job(store)
    skip = SkippedOccurrence(T0 + MINUTE, T0 + MINUTE, "misfire", 5)
    await store.fire([firing(job, skips=[skip])], now=T0 + MINUTE)
    [record] = await store.list_runs(RunFilter(job_id=job.id, status=("skipped",)))
    assert (record.reason, record.count) == ("misfire", 5)
    assert await store.list_runs(RunFilter(reason="misfire")) == [record]


async def test_a_run_held_for_overlap_says_so(store: Store) -> None:
    _, _, held = await given_run_held_for_overlap(store)
    assert await run_ids(store, RunFilter(status=("held",), reason="overlap")) == [held]


@pytest.mark.parametrize("field", ["task", "queue", "tag", "error", "job_id"])
async def test_dead_letters_are_filtered_as_runs_are(store: Store, field: str) -> None:
    _, plain = await given_failed_run(store)
    worker, claimed = await given_running_run(store, None, immediate_job(task="send", queue="mail", tags=["red"]))
    await accept(store, worker, failed(claimed, '{"type":"KeyError","message":"x","traceback":""}'))
    where = {
        "task": RunFilter(task="send"),
        "queue": RunFilter(queue="mail"),
        "tag": RunFilter(tag="red"),
        "error": RunFilter(error="KeyError"),
        "job_id": RunFilter(job_id=claimed.id),
    }[field]
    assert [run.id for run in await store.dead_letters(where)] == [claimed.id]
    assert [run.id for run in await store.dead_letters(RunFilter())] == [claimed.id, plain]
    assert [run.id for run in await store.dead_letters(RunFilter(after_id=claimed.id))] == [plain]
    assert len(await store.dead_letters(RunFilter(), limit=1)) == 1
