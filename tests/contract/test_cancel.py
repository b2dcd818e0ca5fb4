"""Cancel and delete: before the start nothing starts, after it the worker is asked, ends are final (D1, D2, D3)."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.core.errors import NotFound
from mainspring.core.model import HOUR, MINUTE, SECOND, JobFilter, JobState, RunFilter, Verdict
from mainspring.core.states import State
from mainspring.ports.store import Store
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
    given_completed_run,
    given_job,
    given_recurring_job,
    given_retrying_run,
    given_run_held_for_overlap,
    given_running_run,
    given_unknown_run,
    given_worker,
    immediate_job,
    new_id,
    occurrence,
    recurring_job,
    row_of,
    run_of,
    state_of,
    view_of,
)

NOW = T0 + SECOND


async def test_a_queued_run_ends_cancelled_and_never_starts(store: Store) -> None:
    """D1."""
    worker = await given_worker(store)
    job_id = await given_job(store, immediate_job(key="k"))
    outcome = await cancel(store, job_id, now=NOW)
    assert (outcome.job_id, outcome.ended, outcome.asked) == (job_id, (job_id,), ())
    run = await run_of(store, job_id)
    assert (run.state, run.finished_at, run.started_at, run.attempt) == (State.CANCELLED, NOW, None, 0)
    assert await claim(store, worker, now=NOW) == []
    assert await store.find_key("k") is None
    assert (await view_of(store, job_id)).status == "cancelled"


async def test_a_run_whose_task_is_unknown_ends_cancelled(store: Store) -> None:
    job_id = await given_job(store, immediate_job(task="strange"))
    assert (await cancel(store, job_id)).ended == (job_id,)
    assert await state_of(store, job_id) is State.CANCELLED


async def test_a_retrying_run_ends_cancelled_and_is_never_promoted(store: Store) -> None:
    _, run_id = await given_retrying_run(store)
    assert (await cancel(store, run_id, now=NOW)).ended == (run_id,)
    assert await store.promote(now=T0 + HOUR) == 0
    assert await state_of(store, run_id) is State.CANCELLED


async def test_an_unknown_run_ends_cancelled(store: Store) -> None:
    _, run_id = await given_unknown_run(store)
    assert (await cancel(store, run_id, now=NOW)).ended == (run_id,)
    assert not await store.resolve(run_id, State.COMPLETED, now=NOW)


async def test_a_held_run_ends_cancelled(store: Store) -> None:
    worker, running, held = await given_run_held_for_overlap(store)
    assert (await cancel(store, held, now=NOW)).ended == (held,)
    assert await state_of(store, held) is State.CANCELLED
    assert await state_of(store, running.id) is State.RUNNING
    await accept(store, worker, completed(running))


async def test_a_running_run_is_asked_once_and_its_worker_is_told(store: Store) -> None:
    """D2."""
    worker, claimed = await given_running_run(store)
    first = await cancel(store, claimed.id, now=NOW)
    assert (first.ended, first.asked) == ((), (claimed.id,))
    second = await cancel(store, claimed.id, now=NOW + SECOND)
    assert (second.ended, second.asked) == ((), (claimed.id,))

    run = await run_of(store, claimed.id)
    assert (run.state, run.cancel_requested_at) == (State.RUNNING, NOW)
    [answer] = await store.beat([worker], now=NOW)
    assert answer.cancel == ((claimed.id, claimed.fence),)
    await accept(store, worker, cancelled(claimed))
    [answer] = await store.beat([worker], now=NOW)
    assert answer.cancel == ()


async def test_what_has_ended_stays_as_it_ended(store: Store) -> None:
    """B10."""
    _, run_id = await given_completed_run(store)
    outcome = await cancel(store, run_id, now=NOW)
    assert (outcome.job_changed, outcome.ended, outcome.asked) == (False, (), ())
    assert await state_of(store, run_id) is State.COMPLETED


async def test_a_delayed_job_leaves_a_cancelled_record_and_never_fires(store: Store) -> None:
    """A3."""
    new = delayed_job(T0 + HOUR, key="k")
    await given_job(store, new)
    outcome = await cancel(store, new.id, now=NOW)
    assert outcome.job_changed
    assert await store.due_jobs(None, until=T0 + 2 * HOUR) == []
    view = await view_of(store, new.id)
    assert view.status == "cancelled"
    assert view.last_run is not None
    record = view.last_run
    assert (record.id, record.state, record.attempt) == (occurrence(new.id, T0 + HOUR), State.CANCELLED, 0)
    assert (record.finished_at, record.scheduled_at) == (NOW, T0 + HOUR)
    assert await store.find_key("k") is None
    assert (await cancel(store, new.id, now=NOW)).job_changed is False


async def test_a_recurring_job_stops_with_all_its_unfinished_runs(store: Store) -> None:
    worker, running, held = await given_run_held_for_overlap(store)
    job_id = running.job_id
    outcome = await cancel(store, job_id, now=NOW)
    assert outcome.job_changed
    assert (outcome.ended, outcome.asked) == ((held,), (running.id,))
    view = await view_of(store, job_id)
    assert (view.status, view.job.state, view.job.next_at) == ("cancelled", JobState.CANCELLED, None)
    assert await store.due_jobs(None, until=T0 + HOUR) == []
    await accept(store, worker, cancelled(running))
    assert await claim(store, worker, now=T0 + HOUR) == []


async def test_a_cancelled_job_is_not_changed_by_a_second_cancel(store: Store) -> None:
    job = await given_recurring_job(store)
    assert (await cancel(store, job.id)).job_changed
    version = (await row_of(store, job.id)).version
    assert not (await cancel(store, job.id, now=NOW)).job_changed
    assert (await row_of(store, job.id)).version == version


async def test_a_run_of_a_recurring_job_is_cancelled_alone_and_releases_the_next(store: Store) -> None:
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="queue_all"))
    first, second, third = await fire_at(store, job.id, *(T0 + number * MINUTE for number in (1, 2, 3)))
    assert (await cancel(store, first)).ended == (first,)
    assert await state_of(store, second) is State.QUEUED
    assert await state_of(store, third) is State.HELD
    assert (await view_of(store, job.id)).status == "active"
    assert (await claim_one(store, worker, now=T0 + 3 * MINUTE)).id == second


async def test_a_jobs_id_covers_the_runs_made_beside_its_schedule(store: Store) -> None:
    job = await given_recurring_job(store)
    [scheduled] = await fire_at(store, job.id, T0 + MINUTE)
    triggered = await add_run(store, job.id)
    outcome = await cancel(store, job.id)
    assert set(outcome.ended) == {scheduled, triggered.id}


async def test_unknown_ids_are_refused_and_nothing_is_cancelled(store: Store) -> None:
    job_id = await given_job(store, immediate_job(task="strange"))
    with pytest.raises(NotFound):
        await store.cancel([job_id, new_id()], now=T0)
    assert await state_of(store, job_id) is State.HELD


async def test_many_are_cancelled_in_order(store: Store) -> None:
    ids = [await given_job(store, immediate_job()) for _ in range(3)]
    assert [outcome.job_id for outcome in await store.cancel(ids, now=T0)] == ids


class TestDelete:
    """The definition is gone, what happened stays readable."""

    async def test_of_a_recurring_job(self, store: Store) -> None:
        job = await given_recurring_job(store)
        [run_id] = await fire_at(store, job.id, T0 + MINUTE)
        outcome = await cancel(store, job.id, delete=True, now=NOW)
        assert outcome.job_changed
        assert outcome.ended == (run_id,)
        assert await store.jobs([job.id]) == [None]
        assert await store.list_jobs(JobFilter()) == []
        assert await store.due_jobs(None, until=T0 + HOUR) == []
        assert [run.id for run in await store.list_runs(RunFilter(job_id=job.id))] == [run_id]

    async def test_of_an_immediate_job_that_has_ended(self, store: Store) -> None:
        _, job_id = await given_completed_run(store)
        assert (await cancel(store, job_id, delete=True)).job_changed
        assert await store.jobs([job_id]) == [None]
        assert await store.list_jobs(JobFilter()) == []
        assert await state_of(store, job_id) is State.COMPLETED

    async def test_of_a_running_job_asks_its_worker_and_the_run_ends_readable(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        assert (await cancel(store, claimed.id, delete=True)).asked == (claimed.id,)
        assert await store.jobs([claimed.id]) == [None]
        await accept(store, worker, cancelled(claimed))
        assert await store.jobs([claimed.id]) == [None]
        assert await state_of(store, claimed.id) is State.CANCELLED

    async def test_of_a_delayed_job_leaves_its_record(self, store: Store) -> None:
        new = delayed_job(T0 + HOUR)
        await given_job(store, new)
        await cancel(store, new.id, delete=True)
        assert await store.jobs([new.id]) == [None]
        assert await state_of(store, occurrence(new.id, T0 + HOUR)) is State.CANCELLED

    async def test_of_a_recurring_job_that_was_deleted_is_not_found(self, store: Store) -> None:
        job = await given_recurring_job(store)
        await cancel(store, job.id, delete=True)
        with pytest.raises(NotFound):
            await store.cancel([job.id], delete=True, now=T0)


async def test_cancel_and_finish_at_once_agree_with_what_remains(store: Store, other: Store) -> None:
    """D3: the answers and the final state tell one story."""
    worker = await given_worker(store)
    for _ in range(20):
        claimed = (await given_running_run(store, worker))[1]
        [verdict], [outcome] = await asyncio.gather(
            store.finish(worker, [completed(claimed)], now=NOW), other.cancel([claimed.id], now=NOW)
        )
        run = await run_of(store, claimed.id)
        if verdict is Verdict.ACCEPTED:
            assert (run.state, outcome.asked, outcome.ended) == (State.COMPLETED, (), ())
        else:
            assert (verdict, run.state) == (Verdict.CANCEL_REQUESTED, State.RUNNING)
            assert outcome.asked == (claimed.id,)
            await accept(store, worker, cancelled(claimed))


async def test_cancel_and_claim_at_once_agree_with_what_remains(store: Store, other: Store) -> None:
    """D1: an accepted cancel of a queued run means no start."""
    worker = await given_worker(store)
    for _ in range(20):
        job_id = await given_job(store, immediate_job())
        claimed, [outcome] = await asyncio.gather(claim(store, worker), other.cancel([job_id], now=T0))
        if claimed:
            assert (outcome.asked, outcome.ended) == ((job_id,), ())
            await accept(store, worker, cancelled(claimed[0]))
        else:
            assert (outcome.asked, outcome.ended) == ((), (job_id,))
