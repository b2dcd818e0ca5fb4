"""How attempts end: one end a run, stale writes refused, dead letters exact (B1, B9, C1, C2)."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from mainspring.core.decide import record_attempt
from mainspring.core.model import HOUR, MINUTE, SECOND, Claimed, Ending, RunFilter, Verdict
from mainspring.core.states import Outcome, State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    T0,
    accept,
    cancel,
    cancelled,
    claim,
    claim_one,
    completed,
    failed,
    fire_at,
    given_back,
    given_job,
    given_recurring_job,
    given_run_held_for_overlap,
    given_running_run,
    given_worker,
    immediate_job,
    in_doubt,
    new_id,
    recurring_job,
    retrying,
    run_of,
    state_of,
)

NOW = T0 + SECOND


async def test_a_completed_run_is_history_with_its_result(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, completed(claimed, b'{"sum":3}'), now=NOW)

    run = await run_of(store, claimed.id)
    assert (run.state, run.result, run.error) == (State.COMPLETED, b'{"sum":3}', None)
    assert (run.started_at, run.finished_at, run.worker) == (T0, NOW, worker)
    assert (run.fence, run.attempt, run.attempts) == (1, 1, None)
    assert await store.dead_letters(RunFilter()) == []


async def test_a_failed_run_is_history_and_a_dead_letter(store: Store) -> None:
    """C2."""
    worker, claimed = await given_running_run(store)
    await accept(store, worker, failed(claimed), now=NOW)

    run = await run_of(store, claimed.id)
    assert (run.state, run.spent, run.finished_at) == (State.FAILED, 1, NOW)
    assert json.loads(run.error or "")["type"] == "ValueError"
    [letter] = await store.dead_letters(RunFilter())
    assert (letter.id, letter.state, letter.payload, letter.error) == (run.id, State.FAILED, run.payload, run.error)


async def test_the_attempts_handed_in_are_kept(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    first = record_attempt(
        None, number=1, worker=str(worker), started_at=T0, finished_at=NOW, outcome=Outcome.TIMED_OUT
    )
    await accept(store, worker, retrying(claimed, attempts=first), now=NOW)
    await store.retry_now(claimed.id, now=NOW)
    again = await claim_one(store, worker, now=NOW)
    assert json.loads(again.attempts or "") == json.loads(first)
    await accept(store, worker, completed(again), now=NOW)
    assert json.loads((await run_of(store, claimed.id)).attempts or "") == json.loads(first)


async def test_an_end_frees_the_key(store: Store) -> None:
    worker, claimed = await given_running_run(store, None, immediate_job(key="k"))
    await accept(store, worker, completed(claimed))
    assert await store.find_key("k") is None
    await given_job(store, immediate_job(key="k"))


@pytest.mark.parametrize("keep", [retrying, in_doubt])
async def test_what_has_not_ended_keeps_the_key(store: Store, keep: object) -> None:
    worker, claimed = await given_running_run(store, None, immediate_job(key="k"))
    await accept(store, worker, retrying(claimed) if keep is retrying else in_doubt(claimed))
    assert await store.find_key("k") == claimed.id


async def test_a_retry_waits_and_spends_an_attempt(store: Store) -> None:
    """C1."""
    worker, claimed = await given_running_run(store)
    await accept(store, worker, retrying(claimed, wait=MINUTE), now=NOW)

    run = await run_of(store, claimed.id)
    assert (run.state, run.ready_at, run.spent, run.attempt) == (State.RETRYING, NOW + MINUTE, 1, 1)
    assert (run.worker, run.started_at, run.finished_at) == (None, None, None)
    assert json.loads(run.error or "")["message"] == "no"

    assert await store.promote(now=NOW + MINUTE - 1) == 0
    assert await store.promote(now=NOW + MINUTE) == 1
    run = await run_of(store, claimed.id)
    assert (run.state, run.ready_at) == (State.QUEUED, NOW + MINUTE)
    again = await claim_one(store, worker, now=NOW + MINUTE)
    assert (again.fence, again.attempt, again.spent) == (2, 2, 1)


async def test_the_next_wake_is_known_while_something_waits(store: Store) -> None:
    assert await store.next_wake() is None
    worker, claimed = await given_running_run(store)
    await accept(store, worker, retrying(claimed, wait=MINUTE))
    assert await store.next_wake() == T0 + MINUTE
    await given_job(store, immediate_job(expires_at=T0 + SECOND))
    assert await store.next_wake() == T0 + SECOND


async def test_promotion_is_bounded(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(5)], now=T0)
    await store.finish(worker, [retrying(one, wait=0) for one in await claim(store, worker)], now=T0)
    assert [await store.promote(limit=2, now=NOW) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_retry_can_be_had_at_once(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, retrying(claimed, wait=HOUR))
    assert await store.retry_now(claimed.id, now=NOW)
    assert (await claim_one(store, worker, now=NOW)).attempt == 2
    assert not await store.retry_now(claimed.id, now=NOW)
    assert not await store.retry_now(new_id(), now=NOW)
    assert await store.promote(now=T0 + 2 * HOUR) == 0


async def test_given_back_unstarted_takes_the_attempt_number_back_and_keeps_the_place(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    behind = await given_job(store, immediate_job(), now=NOW)
    await accept(store, worker, given_back(claimed, started=False), now=T0 + MINUTE)

    run = await run_of(store, claimed.id)
    assert (run.state, run.ready_at, run.attempt, run.fence, run.spent) == (State.QUEUED, T0, 0, 1, 0)
    assert (run.worker, run.started_at, run.lateness) == (None, None, None)
    first, second = await claim(store, worker, now=T0 + MINUTE)
    assert [first.id, second.id] == [claimed.id, behind]
    assert (first.fence, first.attempt, first.lateness) == (2, 1, MINUTE)


async def test_released_after_its_start_keeps_the_attempt_number_and_spends_nothing(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, given_back(claimed, started=True))
    run = await run_of(store, claimed.id)
    assert (run.state, run.attempt, run.spent, run.reason) == (State.QUEUED, 1, 0, "shutdown")
    assert (await claim_one(store, worker)).attempt == 2


async def test_unknown_stays_and_belongs_to_no_worker(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, in_doubt(claimed))
    run = await run_of(store, claimed.id)
    assert (run.state, run.worker, run.finished_at, run.reason) == (State.UNKNOWN, None, None, "shutdown")
    assert await claim(store, worker, now=T0 + HOUR) == []
    assert await store.rescue(now=T0 + HOUR) == []


async def test_a_reason_of_its_submission_survives_an_ending_without_one(store: Store) -> None:
    worker, claimed = await given_running_run(store, None, immediate_job(reason="at lies in the past"))
    await accept(store, worker, completed(claimed))
    assert (await run_of(store, claimed.id)).reason == "at lies in the past"


class TestStale:
    """B9: a write of an older fence or another worker changes nothing."""

    async def test_another_fence(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        await accept(store, worker, given_back(claimed, started=True))
        again = await claim_one(store, worker)
        before = await run_of(store, claimed.id)
        assert await store.finish(worker, [completed(claimed)], now=NOW) == [Verdict.STALE]
        assert await store.progress(worker, [(claimed.id, claimed.fence, "1")]) == [False]
        assert await run_of(store, claimed.id) == before
        await accept(store, worker, completed(again))

    async def test_another_worker(self, store: Store) -> None:
        _, claimed = await given_running_run(store)
        stranger = await given_worker(store)
        assert await store.finish(stranger, [completed(claimed)], now=NOW) == [Verdict.STALE]
        assert await store.progress(stranger, [(claimed.id, claimed.fence, "1")]) == [False]
        assert await state_of(store, claimed.id) is State.RUNNING

    async def test_a_repeat_of_an_accepted_ending(self, store: Store) -> None:
        """B1."""
        worker, claimed = await given_running_run(store)
        await accept(store, worker, completed(claimed, b'"first"'))
        assert await store.finish(worker, [completed(claimed, b'"second"')], now=NOW) == [Verdict.STALE]
        assert await store.finish(worker, [failed(claimed)], now=NOW) == [Verdict.STALE]
        run = await run_of(store, claimed.id)
        assert (run.state, run.result, run.finished_at) == (State.COMPLETED, b'"first"', T0)
        assert await store.dead_letters(RunFilter()) == []

    @pytest.mark.parametrize("leave", ["retrying", "unknown", "queued"])
    async def test_a_run_that_has_left_its_worker(self, store: Store, leave: str) -> None:
        worker, claimed = await given_running_run(store)
        endings = {
            "retrying": retrying(claimed),
            "unknown": in_doubt(claimed),
            "queued": given_back(claimed, started=True),
        }
        await accept(store, worker, endings[leave])
        assert await store.finish(worker, [completed(claimed)], now=NOW) == [Verdict.STALE]
        assert (await state_of(store, claimed.id)).word == leave

    async def test_an_unknown_run(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        strange = replace(completed(claimed), id=new_id())
        assert await store.finish(worker, [strange], now=NOW) == [Verdict.STALE]

    async def test_twice_in_one_batch_counts_once(self, store: Store) -> None:
        """B1."""
        worker, claimed = await given_running_run(store)
        verdicts = await store.finish(worker, [completed(claimed), completed(claimed)], now=NOW)
        assert sorted(verdicts) == [Verdict.ACCEPTED, Verdict.STALE]
        assert len(await store.list_runs(RunFilter())) == 1


class TestAfterACancel:
    """D2: from the answer on, the run can only end cancelled."""

    @pytest.mark.parametrize("state", ["completed", "failed", "retrying", "queued", "unknown"])
    async def test_any_other_ending_is_refused(self, store: Store, state: str) -> None:
        worker, claimed = await given_running_run(store)
        assert (await cancel(store, claimed.id)).asked == (claimed.id,)
        ending = _ending_to(state, claimed)
        before = await run_of(store, claimed.id)
        assert await store.finish(worker, [ending], now=NOW) == [Verdict.CANCEL_REQUESTED]
        assert await run_of(store, claimed.id) == before

    async def test_cancelled_is_taken(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        await cancel(store, claimed.id)
        await accept(store, worker, cancelled(claimed), now=NOW)
        run = await run_of(store, claimed.id)
        assert (run.state, run.finished_at, run.cancel_requested_at) == (State.CANCELLED, NOW, T0)
        assert await store.dead_letters(RunFilter()) == []

    async def test_a_stale_ending_is_stale_and_no_more(self, store: Store) -> None:
        worker, claimed = await given_running_run(store)
        await cancel(store, claimed.id)
        stale = replace(completed(claimed), fence=claimed.fence + 1)
        assert await store.finish(worker, [stale], now=NOW) == [Verdict.STALE]


async def test_a_handler_may_end_its_run_as_cancelled_unasked(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, cancelled(claimed))
    assert await state_of(store, claimed.id) is State.CANCELLED


async def test_a_batch_is_answered_in_order_each_by_its_own_merit(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(6)], now=T0)
    one, two, three, four, five, six = await claim(store, worker)
    await cancel(store, four.id)
    endings = [
        completed(one),
        failed(two),
        replace(completed(three), fence=9),
        completed(four),
        retrying(five, wait=MINUTE),
        given_back(six, started=False),
    ]
    verdicts = await store.finish(worker, endings, now=NOW)
    accepted, stale, asked = Verdict.ACCEPTED, Verdict.STALE, Verdict.CANCEL_REQUESTED
    assert verdicts == [accepted, accepted, stale, asked, accepted, accepted]
    states = [(await state_of(store, claimed.id)).word for claimed in (one, two, three, four, five, six)]
    assert states == ["completed", "failed", "running", "running", "retrying", "queued"]


async def test_a_large_batch_ends_whole(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(1500)], now=T0)
    claimed = await claim(store, worker, limit=1500)
    verdicts = await store.finish(worker, [completed(one) for one in claimed], now=NOW)
    assert verdicts == [Verdict.ACCEPTED] * 1500
    assert (await store.stats()).by_status.get("running", 0) == 0


async def test_progress_is_kept_under_the_fence(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    assert await store.progress(worker, [(claimed.id, claimed.fence, '{"value":0.5}')]) == [True]
    assert (await run_of(store, claimed.id)).progress == '{"value":0.5}'
    await accept(store, worker, completed(claimed))
    assert (await run_of(store, claimed.id)).progress == '{"value":0.5}'
    assert await store.progress(worker, [(claimed.id, claimed.fence, '{"value":1}')]) == [False]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_an_end_releases_the_run_held_for_it(store: Store, end: str) -> None:
    """E2."""
    worker, running, held = await given_run_held_for_overlap(store)
    assert await claim(store, worker, now=T0 + 2 * MINUTE) == []
    await accept(store, worker, _ending_to(end, running), now=T0 + 3 * MINUTE)
    run = await run_of(store, held)
    assert (run.state, run.reason, run.ready_at) == (State.QUEUED, None, T0 + 2 * MINUTE)
    assert (await claim_one(store, worker, now=T0 + 3 * MINUTE)).id == held


@pytest.mark.parametrize("state", ["retrying", "unknown", "queued"])
async def test_what_has_not_ended_still_holds_the_next(store: Store, state: str) -> None:
    """E2: overlap counts what is queued, retrying or unknown too."""
    worker, running, held = await given_run_held_for_overlap(store)
    await accept(store, worker, _ending_to(state, running), now=T0 + 3 * MINUTE)
    assert await state_of(store, held) is State.HELD


async def test_held_runs_are_released_one_by_one_oldest_first(store: Store) -> None:
    """E2: order and count."""
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="queue_all"))
    now = T0 + 4 * MINUTE
    runs = await fire_at(store, job.id, *(T0 + number * MINUTE for number in (1, 2, 3, 4)))
    order: list[UUID] = []
    while claimed := await claim(store, worker, now=now):
        [one] = claimed
        order.append(one.id)
        await accept(store, worker, completed(one), now=now)
    assert order == list(runs)


def _ending_to(state: str, claimed: Claimed) -> Ending:
    endings = {
        "completed": completed(claimed),
        "failed": failed(claimed),
        "cancelled": cancelled(claimed),
        "retrying": retrying(claimed),
        "unknown": in_doubt(claimed),
        "queued": given_back(claimed, started=True),
    }
    return endings[state]
