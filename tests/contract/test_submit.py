"""Submitting: what is accepted is stored whole and once (A1, A2)."""

from __future__ import annotations

from uuid import UUID

import pytest

from mainspring.core.errors import Conflict, InvalidInput, KeyTaken
from mainspring.core.model import DAY, HOUR, MINUTE, SECOND, JobState, Kind, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    T0,
    accept,
    cancel,
    claim_one,
    completed,
    delayed_job,
    fire_at,
    given_completed_run,
    given_job,
    given_recurring_job,
    given_worker,
    immediate_job,
    new_id,
    recurring_job,
    row_of,
    run_of,
    state_of,
    view_of,
)


async def test_an_immediate_job_is_born_as_a_queued_run_with_its_id(store: Store) -> None:
    await given_worker(store)
    new = immediate_job(
        payload=b'{"a":1}', priority=70, queue="mail", created_by="me", tags=["x"], expires_at=T0 + HOUR
    )
    await given_job(store, new)

    run = await run_of(store, new.id)
    assert (run.id, run.job_id, run.state) == (new.id, new.id, State.QUEUED)
    assert (run.ready_at, run.scheduled_at, run.created_at, run.expires_at) == (T0, T0, T0, T0 + HOUR)
    assert (run.lane, run.kind, run.priority, run.payload) == (new.lane, Kind.IMMEDIATE, 70, b'{"a":1}')
    assert (run.document, run.created_by, run.origin) == ('{"tags":["x"]}', "me", "submit")
    assert (run.fence, run.attempt, run.spent, run.deaths) == (0, 0, 0, 0)
    assert (run.worker, run.started_at, run.finished_at, run.result, run.error) == (None, None, None, None, None)


async def test_a_time_in_the_past_stays_as_it_is_and_the_run_is_ready_now(store: Store) -> None:
    await given_worker(store)
    new = immediate_job(scheduled_at=T0 - HOUR, reason="at lies in the past")
    await given_job(store, new)

    run = await run_of(store, new.id)
    assert (run.scheduled_at, run.ready_at, run.reason) == (T0 - HOUR, T0, "at lies in the past")


async def test_a_delayed_job_is_a_row_that_waits_for_its_time(store: Store) -> None:
    new = delayed_job(T0 + HOUR, key="k", name="later")
    await given_job(store, new)

    view = await view_of(store, new.id)
    job = view.job
    assert (view.status, view.last_run) == ("scheduled", None)
    assert (job.state, job.kind, job.version, job.runs_made) == (JobState.SCHEDULED, Kind.DELAYED, 1, 0)
    assert (job.next_at, job.scheduled_at, job.fired_through) == (T0 + HOUR, T0 + HOUR, T0)
    assert (job.created_at, job.updated_at, job.key, job.paused_at) == (T0, T0, "k", None)
    assert await store.runs([new.id]) == [None]


async def test_a_recurring_job_is_active_and_fired_through_its_creation(store: Store) -> None:
    job = await given_recurring_job(store)
    assert (job.state, job.kind, job.version) == (JobState.ACTIVE, Kind.RECURRING, 1)
    assert (job.fired_through, job.next_at) == (T0, T0 + MINUTE)


async def test_the_answers_come_in_order_and_tell_whether_the_task_is_known(store: Store) -> None:
    await given_worker(store, tasks=["known"])
    jobs = [immediate_job(task="known"), immediate_job(task="strange"), delayed_job(T0 + HOUR, task="known")]
    answers = await store.submit(jobs, now=T0)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert [answer.known for answer in answers] == [True, False, True]
    assert not any(answer.existed for answer in answers)


async def test_nothing_is_a_batch_too(store: Store) -> None:
    assert await store.submit([], now=T0) == []


async def test_a_large_batch_is_stored_whole(store: Store) -> None:
    worker = await given_worker(store)
    jobs = [immediate_job() for _ in range(2500)]
    assert len(await store.submit(jobs, now=T0)) == 2500
    claimed = await store.claim(worker, tasks=["task"], queues=None, count=3000, now=T0)
    assert [one.id for one in claimed] == [job.id for job in jobs]


@pytest.mark.parametrize("distance", [DAY + MINUTE, -DAY - MINUTE])
async def test_an_id_more_than_a_day_away_is_refused_and_nothing_is_stored(store: Store, distance: int) -> None:
    good, strange = immediate_job(), immediate_job(at=T0 + distance)
    with pytest.raises(InvalidInput):
        await store.submit([good, strange], now=T0)
    assert await store.runs([good.id, strange.id]) == [None, None]


async def test_an_id_within_a_day_is_taken(store: Store) -> None:
    early = immediate_job(at=T0 - DAY + MINUTE)
    await given_job(store, early)
    assert (await run_of(store, early.id)).created_at == T0


async def test_an_id_that_is_live_is_refused_unless_the_send_says_it_may_be_a_repeat(store: Store) -> None:
    run, job = immediate_job(), recurring_job()
    await store.submit([run, job], now=T0)
    for known in (run, job):
        fresh = immediate_job()
        with pytest.raises(Conflict):
            await store.submit([fresh, known], now=T0)
        assert await store.runs([fresh.id]) == [None]


class TestRepeats:
    """A lost reply is sent again: the first send counts, also when all is over (A1, A2)."""

    async def test_of_a_live_run_is_withdrawn(self, store: Store) -> None:
        new = immediate_job()
        await given_job(store, new)
        [answer] = await store.submit([new], repeat=True, now=T0 + SECOND)
        assert (answer.id, answer.existed) == (new.id, True)
        assert (await run_of(store, new.id)).created_at == T0

    async def test_of_a_first_send_that_never_arrived_is_stored(self, store: Store) -> None:
        new = immediate_job()
        [answer] = await store.submit([new], repeat=True, now=T0)
        assert not answer.existed
        assert (await run_of(store, new.id)).id == new.id

    async def test_of_a_run_that_has_ended_starts_nothing_again(self, store: Store) -> None:
        new = immediate_job()
        worker = await given_worker(store)
        await given_job(store, new)
        await accept(store, worker, completed(await claim_one(store, worker)))

        [answer] = await store.submit([new], repeat=True, now=T0 + SECOND)
        assert answer.existed
        assert await state_of(store, new.id) is State.COMPLETED
        assert await store.claim(worker, tasks=["task"], queues=None, count=1, now=T0 + SECOND) == []

    async def test_of_a_cancelled_run_starts_nothing_again(self, store: Store) -> None:
        new = immediate_job()
        await given_job(store, new)
        await cancel(store, new.id)
        [answer] = await store.submit([new], repeat=True, now=T0)
        assert answer.existed
        assert await state_of(store, new.id) is State.CANCELLED

    async def test_of_jobs_that_wait_is_withdrawn(self, store: Store) -> None:
        delayed, recurring = delayed_job(T0 + HOUR), recurring_job()
        await store.submit([delayed, recurring], now=T0)
        answers = await store.submit([delayed, recurring], repeat=True, now=T0 + SECOND)
        assert [answer.existed for answer in answers] == [True, True]
        assert (await row_of(store, recurring.id)).created_at == T0

    async def test_of_a_delayed_job_that_has_fired_and_ended_makes_no_second_run(self, store: Store) -> None:
        new = delayed_job(T0 + MINUTE)
        worker = await given_worker(store)
        await given_job(store, new)
        await fire_at(store, new.id, T0 + MINUTE)
        await accept(store, worker, completed(await claim_one(store, worker, now=T0 + MINUTE)), now=T0 + MINUTE)

        [answer] = await store.submit([new], repeat=True, now=T0 + 2 * MINUTE)
        assert answer.existed
        assert await store.due_jobs(None, until=T0 + HOUR) == []
        assert len(await store.list_runs(RunFilter(job_id=new.id))) == 1

    async def test_its_own_key_is_not_taken(self, store: Store) -> None:
        new = immediate_job(key="mine")
        await given_job(store, new)
        [answer] = await store.submit([new], repeat=True, now=T0)
        assert answer.existed

    async def test_beside_new_ones_only_the_new_are_stored(self, store: Store) -> None:
        _, ended = await given_completed_run(store)
        old = immediate_job()
        fresh = immediate_job()
        await given_job(store, old)
        answers = await store.submit([old, fresh], repeat=True, now=T0)
        assert [answer.existed for answer in answers] == [True, False]
        assert await state_of(store, ended) is State.COMPLETED


class TestKeys:
    async def test_a_live_key_is_refused_and_names_its_holder(self, store: Store) -> None:
        holder = await given_job(store, immediate_job(key="k"))
        fresh = immediate_job()
        with pytest.raises(KeyTaken) as refusal:
            await store.submit([fresh, immediate_job(key="k")], now=T0)
        assert UUID(refusal.value.holder) == holder
        assert refusal.value.key == "k"
        assert await store.runs([fresh.id]) == [None]

    async def test_two_equal_keys_in_a_batch_are_refused(self, store: Store) -> None:
        first = immediate_job(key="k")
        with pytest.raises(KeyTaken) as refusal:
            await store.submit([first, delayed_job(T0 + HOUR, key="k")], now=T0)
        assert UUID(refusal.value.holder) == first.id
        assert await store.find_key("k") is None

    async def test_the_holder_is_found_by_it(self, store: Store) -> None:
        jobs = [immediate_job(key="a"), delayed_job(T0 + HOUR, key="b"), recurring_job(key="c")]
        await store.submit(jobs, now=T0)
        assert [await store.find_key(key) for key in "abc"] == [job.id for job in jobs]
        assert await store.find_key("d") is None

    async def test_is_of_its_namespace(self, store: Store) -> None:
        here = await given_job(store, immediate_job(key="k"))
        there = await given_job(store, immediate_job(key="k", namespace="other"))
        assert await store.find_key("k") == here
        assert await store.find_key("k", "other") == there

    async def test_is_held_while_the_run_of_a_delayed_job_goes_on_and_freed_with_its_end(self, store: Store) -> None:
        worker = await given_worker(store)
        job_id = await given_job(store, delayed_job(T0 + MINUTE, key="k"))
        await fire_at(store, job_id, T0 + MINUTE)
        assert await store.find_key("k") == job_id
        claimed = await claim_one(store, worker, now=T0 + MINUTE)
        assert await store.find_key("k") == job_id
        await accept(store, worker, completed(claimed), now=T0 + MINUTE)
        assert await store.find_key("k") is None
        await given_job(store, immediate_job(key="k"))

    async def test_of_a_recurring_job_outlives_its_runs_and_goes_with_the_job(self, store: Store) -> None:
        worker = await given_worker(store)
        job = await given_recurring_job(store, recurring_job(key="k"))
        await fire_at(store, job.id, T0 + MINUTE)
        await accept(store, worker, completed(await claim_one(store, worker, now=T0 + MINUTE)), now=T0 + MINUTE)
        assert await store.find_key("k") == job.id
        await cancel(store, job.id)
        assert await store.find_key("k") is None

    async def test_that_was_freed_and_taken_again_is_not_freed_by_who_held_it_before(self, store: Store) -> None:
        worker = await given_worker(store)
        first = await given_job(store, immediate_job(key="k"))
        claimed = await claim_one(store, worker)
        await cancel(store, first, delete=True)
        second = await given_job(store, immediate_job(key="k"))
        await store.finish(worker, [completed(claimed)], now=T0)
        assert await store.find_key("k") == second

    async def test_a_deleted_job_frees_it_at_once(self, store: Store) -> None:
        for new in (immediate_job(key="a"), delayed_job(T0 + HOUR, key="b"), recurring_job(key="c")):
            await given_job(store, new)
            await cancel(store, new.id, delete=True)
            assert new.key is not None
            assert await store.find_key(new.key) is None


def test_ids_made_for_tests_sort_by_their_making() -> None:
    ids = [new_id() for _ in range(100)]
    assert ids == sorted(ids)
