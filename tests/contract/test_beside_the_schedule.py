"""Runs beside the schedule: trigger, retry of an ended run, replay; and the resolution of unknown ones (B10, C2)."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.core.errors import Conflict, NotFound
from mainspring.core.model import HOUR, MINUTE, SECOND, Kind, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import NewRun, Store
from tests.contract.helpers import (
    T0,
    accept,
    add_run,
    cancel,
    claim,
    claim_one,
    completed,
    delayed_job,
    fire_at,
    given_completed_run,
    given_failed_run,
    given_job,
    given_recurring_job,
    given_retrying_run,
    given_running_run,
    given_unknown_run,
    given_worker,
    immediate_job,
    new_id,
    recurring_job,
    row_of,
    run_of,
    state_of,
    view_of,
)

NOW = T0 + SECOND


class TestTrigger:
    async def test_of_a_recurring_job_runs_now_and_moves_nothing(self, store: Store) -> None:
        await given_worker(store)
        job = await given_recurring_job(store)
        run = await add_run(store, job.id, now=NOW)
        assert (run.job_id, run.state, run.origin, run.kind) == (job.id, State.QUEUED, "trigger", Kind.RECURRING)
        assert (run.ready_at, run.scheduled_at, run.created_at) == (NOW, NOW, NOW)
        assert (run.lane, run.priority, run.payload, run.document) == (
            job.lane,
            job.priority,
            job.payload,
            job.document,
        )
        assert (run.stands_for_job, run.key) == (False, None)
        assert await row_of(store, job.id) == job
        assert await run_of(store, run.id) == run

    async def test_of_a_delayed_job_is_its_run(self, store: Store) -> None:
        """A3: it does not fire again."""
        worker = await given_worker(store)
        new = delayed_job(T0 + HOUR, key="k")
        await given_job(store, new)
        run = await add_run(store, new.id, now=NOW)
        assert (run.stands_for_job, run.key, run.ready_at) == (True, "k", NOW)
        assert await store.due_jobs(None, until=T0 + 2 * HOUR) == []
        assert (await view_of(store, new.id)).status == "queued"
        await accept(store, worker, completed(await claim_one(store, worker, now=NOW)), now=NOW)
        assert (await view_of(store, new.id)).status == "completed"
        assert await store.find_key("k") is None

    async def test_of_a_task_that_nobody_knows_is_held(self, store: Store) -> None:
        job = await given_recurring_job(store)
        assert (await add_run(store, job.id)).state is State.HELD

    async def test_obeys_overlap_where_asked(self, store: Store) -> None:
        """E2."""
        await given_worker(store)
        job = await given_recurring_job(store, recurring_job(overlap="skip"))
        await add_run(store, job.id, respect_overlap=True)
        with pytest.raises(Conflict):
            await add_run(store, job.id, respect_overlap=True)
        assert len(await store.list_runs(RunFilter(job_id=job.id))) == 1

    async def test_waits_where_the_rule_says_so(self, store: Store) -> None:
        await given_worker(store)
        job = await given_recurring_job(store, recurring_job(overlap="queue_one"))
        first = await add_run(store, job.id, respect_overlap=True)
        second = await add_run(store, job.id, respect_overlap=True)
        assert (first.state, second.state, second.reason) == (State.QUEUED, State.HELD, "overlap")
        await cancel(store, first.id)
        assert await state_of(store, second.id) is State.QUEUED

    async def test_of_a_cancelled_job_is_refused(self, store: Store) -> None:
        """D1."""
        job = await given_recurring_job(store)
        await cancel(store, job.id)
        with pytest.raises(Conflict):
            await add_run(store, job.id)

    async def test_of_an_unknown_job_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await add_run(store, new_id())

    async def test_the_same_id_twice_is_refused(self, store: Store) -> None:
        """A repeat of a trigger makes no second run."""
        job = await given_recurring_job(store, recurring_job(overlap="allow"))
        run = await add_run(store, job.id)
        with pytest.raises(Conflict):
            await store.add_runs([NewRun(run.id, job.id, "trigger")], now=NOW)
        await cancel(store, run.id)
        with pytest.raises(Conflict):
            await store.add_runs([NewRun(run.id, job.id, "trigger")], now=NOW)
        assert len(await store.list_runs(RunFilter(job_id=job.id))) == 1

    async def test_a_batch_is_made_whole_or_not_at_all(self, store: Store) -> None:
        job = await given_recurring_job(store, recurring_job(overlap="allow"))
        with pytest.raises(NotFound):
            await store.add_runs(
                [NewRun(new_id(), job.id, "backfill"), NewRun(new_id(), new_id(), "backfill")], now=NOW
            )
        assert await store.list_runs(RunFilter()) == []


class TestRetryAndReplay:
    async def test_a_retry_of_an_ended_run_is_a_new_run_linked_to_it(self, store: Store) -> None:
        """B10."""
        _, old = await given_failed_run(store, immediate_job(payload=b'{"a":1}', priority=70, timeout="5s"))
        run = await add_run(store, old, "retry", replaces=old, now=NOW)
        assert (run.job_id, run.replaces, run.origin, run.state) == (old, old, "retry", State.QUEUED)
        assert (run.payload, run.priority, run.document) == (b'{"a":1}', 70, '{"timeout":"5s"}')
        assert (run.attempt, run.spent, run.deaths, run.fence) == (0, 0, 0, 0)
        assert await state_of(store, old) is State.FAILED

    async def test_a_job_is_known_by_its_newest_run(self, store: Store) -> None:
        worker, old = await given_failed_run(store)
        run = await add_run(store, old, "retry", replaces=old, now=NOW)
        view = await view_of(store, old)
        assert view.last_run is not None
        assert (view.job.id, view.status, view.last_run.id) == (old, "queued", run.id)
        await accept(store, worker, completed(await claim_one(store, worker, now=NOW)), now=NOW)
        assert (await view_of(store, old)).status == "completed"

    async def test_a_replay_redeems_the_dead_letter_with_another_payload(self, store: Store) -> None:
        """C2."""
        _, old = await given_failed_run(store)
        run = await add_run(store, old, "replay", replaces=old, payload=b'{"b":2}', redeem=True, now=NOW)
        assert (run.payload, run.replaces) == (b'{"b":2}', old)
        assert await store.dead_letters(RunFilter()) == []
        assert (await run_of(store, old)).payload == b"{}"

    async def test_a_dead_letter_is_redeemed_once(self, store: Store) -> None:
        """C2, H3."""
        _, old = await given_failed_run(store)
        await add_run(store, old, "replay", replaces=old, redeem=True)
        with pytest.raises(Conflict):
            await add_run(store, old, "replay", replaces=old, redeem=True)
        assert len(await store.list_runs(RunFilter(job_id=old))) == 2

    async def test_two_replays_at_once_make_one_run(self, store: Store, other: Store) -> None:
        _, old = await given_failed_run(store)
        answers = await asyncio.gather(
            add_run(store, old, "replay", replaces=old, redeem=True),
            add_run(other, old, "replay", replaces=old, redeem=True),
            return_exceptions=True,
        )
        assert sorted(isinstance(answer, Conflict) for answer in answers) == [False, True]
        assert len(await store.list_runs(RunFilter(job_id=old))) == 2

    async def test_what_never_failed_has_nothing_to_redeem(self, store: Store) -> None:
        _, old = await given_completed_run(store)
        with pytest.raises(Conflict):
            await add_run(store, old, "replay", replaces=old, redeem=True)

    async def test_a_replay_works_though_the_job_is_deleted(self, store: Store) -> None:
        worker = await given_worker(store)
        job = await given_recurring_job(store)
        [old] = await fire_at(store, job.id, T0 + MINUTE)
        await accept(store, worker, completed(await claim_one(store, worker, now=T0 + MINUTE)), now=T0 + MINUTE)
        await cancel(store, job.id, delete=True)
        run = await add_run(store, job.id, "retry", replaces=old, now=T0 + MINUTE)
        assert (run.job_id, run.lane) == (job.id, job.lane)
        assert await store.jobs([job.id]) == [None]

    async def test_of_an_unknown_run_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await add_run(store, new_id(), "retry", replaces=new_id())

    async def test_discarded_letters_are_gone_and_their_runs_stay(self, store: Store) -> None:
        """C2."""
        _, old = await given_failed_run(store)
        assert await store.discard_dead_letters([old, new_id()], by="me") == [True, False]
        assert await store.discard_dead_letters([old]) == [False]
        assert await store.dead_letters(RunFilter()) == []
        assert await state_of(store, old) is State.FAILED

    async def test_a_second_failure_is_a_letter_of_its_own(self, store: Store) -> None:
        """C2: dead letters are the failed runs that nobody redeemed, no more, no less."""
        _, old = await given_failed_run(store)
        _, second = await given_failed_run(store)
        assert [run.id for run in await store.dead_letters(RunFilter())] == [second, old]


class TestResolve:
    @pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED])
    async def test_to_an_end(self, store: Store, state: State) -> None:
        _, run_id = await given_unknown_run(store, immediate_job(key="k"))
        assert await store.resolve(run_id, state, note="asked the bank", by="me", now=NOW)
        run = await run_of(store, run_id)
        assert (run.state, run.finished_at, run.reason) == (state, NOW, "asked the bank")
        assert await store.find_key("k") is None
        letters = await store.dead_letters(RunFilter())
        assert [letter.id for letter in letters] == ([run_id] if state is State.FAILED else [])

    async def test_to_another_attempt(self, store: Store) -> None:
        worker, run_id = await given_unknown_run(store)
        assert await store.resolve(run_id, State.QUEUED, now=NOW)
        assert (await run_of(store, run_id)).ready_at == T0
        again = await claim_one(store, worker, now=NOW)
        assert (again.id, again.attempt, again.fence) == (run_id, 2, 2)

    async def test_of_what_is_not_unknown_changes_nothing(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        _, retrying_id = await given_retrying_run(store)
        for run_id in (claimed.id, retrying_id, new_id()):
            assert not await store.resolve(run_id, State.COMPLETED, now=NOW)
        assert await state_of(store, claimed.id) is State.RUNNING
        await accept(store, worker, completed(claimed))
        assert not await store.resolve(claimed.id, State.FAILED, now=NOW)
        assert await state_of(store, claimed.id) is State.COMPLETED

    async def test_releases_the_run_held_for_it(self, store: Store) -> None:
        worker = await given_worker(store)
        job = await given_recurring_job(store, recurring_job(overlap="queue_one", on_lost="hold"))
        await fire_at(store, job.id, T0 + MINUTE)
        running = await claim_one(store, worker, now=T0 + MINUTE)
        [held] = await fire_at(store, job.id, T0 + 2 * MINUTE)
        await store.deregister(worker, now=T0 + 2 * MINUTE)
        await store.rescue(now=T0 + 2 * MINUTE)
        assert await state_of(store, running.id) is State.UNKNOWN
        assert await state_of(store, held) is State.HELD
        assert await store.resolve(running.id, State.COMPLETED, now=T0 + 3 * MINUTE)
        assert await state_of(store, held) is State.QUEUED

    async def test_an_unknown_run_is_left_alone_until_then(self, store: Store) -> None:
        worker, _ = await given_unknown_run(store)
        assert await store.promote(now=T0 + HOUR) == 0
        assert await claim(store, worker, now=T0 + HOUR) == []
