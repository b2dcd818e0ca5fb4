"""Life and loss of workers: beats, drains, verdicts, and what becomes of lost attempts (B5, B6, C1, C3)."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from mainspring.core.decide import Tally, decide_lost
from mainspring.core.model import HOUR, MINUTE, SECOND, Evidence, TaskInfo, Verdict
from mainspring.core.policy import policy_of
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    T0,
    accept,
    cancel,
    claim,
    claim_one,
    completed,
    document,
    given_back,
    given_job,
    given_run_held_for_overlap,
    given_running_run,
    given_worker,
    immediate_job,
    new_id,
    run_of,
    state_of,
    worker_info,
)

NOW = T0 + SECOND


# --- registering, beating, draining


async def test_a_registered_worker_is_listed_as_it_said(store: Store) -> None:
    worker, keeper = new_id(), new_id()
    info = worker_info(worker, keeper=keeper)
    info.queues = ("mail", "web")
    assert await store.register(info, [TaskInfo("task")], now=T0) == T0
    [listed] = await store.workers()
    assert (listed.id, listed.host, listed.pid, listed.queues, listed.slots) == (
        worker,
        "host",
        4711,
        ("mail", "web"),
        10,
    )
    assert (listed.version, listed.lease, listed.namespace, listed.keeper) == ("0.1.0", 30 * SECOND, "default", keeper)
    assert (listed.started_at, listed.beat_at, listed.running, listed.draining) == (T0, T0, 0, False)
    assert (listed.lost_at, listed.evidence) == (None, None)


async def test_a_worker_is_listed_with_how_many_runs_it_holds(store: Store) -> None:
    worker = await given_worker(store)
    idle = await given_worker(store)
    await store.submit([immediate_job() for _ in range(3)], now=T0)
    await claim(store, worker)
    assert {info.id: info.running for info in await store.workers()} == {worker: 3, idle: 0}


async def test_a_beat_answers_in_order_and_knows_no_strangers(store: Store) -> None:
    worker = await given_worker(store)
    strange, known = await store.beat([new_id(), worker], now=NOW)
    assert (strange.known, known.known) == (False, True)
    assert (known.drain, known.cancel, known.now) == (False, (), NOW)


async def test_a_beat_renews_where_workers_live_by_beats(store: Store) -> None:
    worker, keeper = await given_worker(store), new_id()
    [before] = await store.workers()
    await store.beat([worker], keeper=keeper, now=NOW)
    [after] = await store.workers()
    if store.capabilities.process_signs:
        assert after == before
    else:
        assert (after.beat, after.beat_at, after.keeper) == (before.beat + 1, NOW, keeper)


async def test_a_drain_is_told_with_the_beat(store: Store) -> None:
    worker = await given_worker(store)
    assert await store.drain(worker)
    [answer] = await store.beat([worker], now=NOW)
    assert answer.drain
    [info] = await store.workers()
    assert info.draining
    assert not await store.drain(new_id())


async def test_registering_again_keeps_a_living_worker_and_its_runs(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await store.register(worker_info(worker), [TaskInfo("task")], now=NOW)
    assert await store.rescue(now=NOW) == []
    [info] = await store.workers()
    assert (info.id, info.running) == (worker, 1)
    await accept(store, worker, completed(claimed))


async def test_registering_again_does_not_revive_a_lost_worker(store: Store) -> None:
    worker = await given_worker(store)
    await store.declare_lost(worker, Evidence.SILENCE, now=T0)
    await store.register(worker_info(worker), [TaskInfo("task")], now=NOW)
    await given_job(store, immediate_job())
    assert await claim(store, worker) == []
    [answer] = await store.beat([worker], now=NOW)
    assert not answer.known


async def test_a_worker_that_stopped_is_gone_and_its_runs_are_those_of_a_dead_one(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await store.deregister(worker, now=NOW)
    assert await store.workers() == []
    [rescued] = await store.rescue(now=NOW)
    assert (rescued.run_id, rescued.worker, rescued.state, rescued.reason) == (
        claimed.id,
        worker,
        State.QUEUED,
        "death",
    )
    run = await run_of(store, claimed.id)
    assert (run.state, run.spent, run.deaths) == (State.QUEUED, 1, 1)


async def test_a_verdict_stands_though_its_worker_stops_afterwards(store: Store) -> None:
    """C3: a stall stays a stall; the run is not taken for one that kills its worker."""
    worker, claimed = await given_running_run(store)
    await store.declare_lost(worker, Evidence.STALL, now=T0)
    await store.deregister(worker, now=NOW)
    assert [info.id for info in await store.workers(lost=True)] == [worker]
    [rescued] = await store.rescue(now=NOW)
    assert rescued.reason == "stall"
    run = await run_of(store, claimed.id)
    assert (run.spent, run.deaths) == (1, 0)
    assert await store.workers(lost=True) == []


async def test_a_worker_that_stopped_without_runs_leaves_nothing(store: Store) -> None:
    worker = await given_worker(store)
    await store.deregister(worker, now=NOW)
    await store.deregister(worker, now=NOW)
    assert await store.workers(lost=True) == []


# --- verdicts


async def test_a_verdict_is_given_once(store: Store) -> None:
    worker = await given_worker(store)
    assert await store.declare_lost(worker, Evidence.DEATH, now=NOW)
    assert not await store.declare_lost(worker, Evidence.SILENCE, now=NOW)
    assert not await store.declare_lost(new_id(), Evidence.DEATH, now=NOW)


async def test_silence_is_refuted_by_a_beat(store: Store) -> None:
    """A worker that renews is never accused of silence; where nobody beats, nobody is."""
    worker = await given_worker(store)
    [seen] = await store.workers()
    await store.beat([worker], now=NOW)
    assert not await store.declare_lost(worker, Evidence.SILENCE, beat=seen.beat - 1, now=NOW)
    [now_seen] = await store.workers()
    if now_seen.beat != seen.beat:
        assert not await store.declare_lost(worker, Evidence.SILENCE, beat=seen.beat, now=NOW)
    [seen] = await store.workers()
    assert await store.declare_lost(worker, Evidence.SILENCE, beat=seen.beat, now=NOW)


async def test_the_lost_are_listed_while_they_hold_runs(store: Store) -> None:
    worker, _ = await given_running_run(store)
    empty = await given_worker(store)
    await store.declare_lost(worker, Evidence.STALL, now=NOW)
    await store.declare_lost(empty, Evidence.STALL, now=NOW)
    assert await store.workers() == []
    [lost] = await store.workers(lost=True)
    assert (lost.id, lost.lost_at, lost.evidence, lost.running) == (worker, NOW, "stall", 1)
    await store.rescue(now=NOW)
    assert await store.workers(lost=True) == []


async def test_a_lost_worker_hears_that_it_is_known_no_more(store: Store) -> None:
    worker, _ = await given_running_run(store)
    await store.declare_lost(worker, Evidence.SILENCE, now=NOW)
    [answer] = await store.beat([worker], now=NOW)
    assert not answer.known


# --- rescue


async def test_the_runs_of_the_living_are_never_touched(store: Store) -> None:
    """B6: no verdict, no rescue, however long it is silent."""
    _, claimed = await given_running_run(store)
    assert await store.rescue(now=T0 + 24 * HOUR) == []
    assert await state_of(store, claimed.id) is State.RUNNING


@pytest.mark.parametrize("on_lost", ["retry", "fail", "hold"])
@pytest.mark.parametrize("evidence", list(Evidence))
async def test_a_lost_attempt_becomes_what_the_core_decides(store: Store, evidence: Evidence, on_lost: str) -> None:
    """C1, C3: three losses in a row, each by the table; the run ends or goes on as decided."""
    fields = document(on_lost=on_lost)
    run_id = await given_job(store, immediate_job(on_lost=on_lost))
    tally = Tally()
    for number in (1, 2, 3):
        worker = await given_worker(store)
        claimed = await claim_one(store, worker)
        expected = decide_lost(tally, policy_of(fields), evidence, 0.5)
        assert await store.declare_lost(worker, evidence, now=NOW)
        [rescued] = await store.rescue(random_value=0.5, now=NOW)

        run = await run_of(store, run_id)
        assert (rescued.run_id, rescued.worker, rescued.state) == (run_id, worker, expected.state)
        assert (run.state, run.spent, run.deaths) == (expected.state, expected.spent, expected.deaths)
        assert run.reason == expected.reason
        [*_, attempt] = json.loads(run.attempts or "[]")
        assert (attempt["number"], attempt["worker"], attempt["outcome"]) == (number, str(worker), expected.outcome)
        assert attempt["error"] == json.loads(run.error or "")
        assert claimed.attempt == number
        if expected.state is not State.QUEUED:
            break
        assert (run.ready_at, run.worker, run.started_at) == (T0, None, None)
        tally = Tally(expected.spent, expected.deaths)


async def test_three_deaths_make_a_poison_run_whatever_its_attempts(store: Store) -> None:
    """C3."""
    run_id = await given_job(store, immediate_job(retry={"max_attempts": 10}))
    reasons = [await _die_under(store, run_id) for _ in range(3)]
    assert reasons == ["death", "death", "poison"]
    run = await run_of(store, run_id)
    assert (run.state, run.reason, run.deaths, run.spent) == (State.FAILED, "poison", 3, 3)
    assert run.finished_at == NOW
    told = json.loads(run.error or "")
    attempts = json.loads(run.attempts or "")
    assert (told["type"], told["traceback"]) == ("WorkerLost", "")
    assert [each["worker"] in told["message"] for each in attempts] == [True] * 3
    assert attempts[-1]["error"] == told


async def _die_under(store: Store, run_id: UUID) -> str:
    """A new worker claims the run and dies; the reason of the rescue."""
    worker = await given_worker(store)
    assert (await claim_one(store, worker)).id == run_id
    await store.declare_lost(worker, Evidence.DEATH, now=NOW)
    [rescued] = await store.rescue(now=NOW)
    assert rescued.worker == worker
    return rescued.reason


@pytest.mark.parametrize(
    ("evidence", "wait"), [(Evidence.SILENCE, 30 * SECOND), (Evidence.DEATH, 0), (Evidence.STALL, 0)]
)
async def test_a_run_that_bears_more_silence_is_taken_up_later(store: Store, evidence: Evidence, wait: int) -> None:
    """B6: cut off alone, its handler goes on until almost then. Whoever is dead or stopped is not waited for."""
    worker = await given_worker(store)
    await store.submit([immediate_job(lost_after="1m"), immediate_job(), immediate_job(lost_after="10s")], now=T0)
    patient, *others = await claim(store, worker)
    await store.declare_lost(worker, evidence, now=NOW)
    first = [one.run_id for one in await store.rescue(now=NOW)]
    assert set(first) >= {run.id for run in others}
    assert (patient.id in first) == (wait == 0)
    assert await store.rescue(now=NOW + wait - 1) == []
    assert [one.run_id for one in await store.rescue(now=NOW + wait)] == [patient.id] * (wait > 0)
    assert await store.workers(lost=True) == []


async def test_a_failed_rescue_leaves_a_dead_letter_and_frees_the_key(store: Store) -> None:
    worker, claimed = await given_running_run(store, None, immediate_job(on_lost="fail", key="k"))
    await store.declare_lost(worker, Evidence.SILENCE, now=NOW)
    await store.rescue(now=NOW)
    assert (await store.stats()).dead_letters == 1
    assert await store.find_key("k") is None
    assert await state_of(store, claimed.id) is State.FAILED


async def test_a_requested_cancel_wins_over_a_loss(store: Store) -> None:
    """D2."""
    worker, claimed = await given_running_run(store)
    await cancel(store, claimed.id)
    await store.declare_lost(worker, Evidence.DEATH, now=NOW)
    [rescued] = await store.rescue(now=NOW)
    assert rescued.state == State.CANCELLED
    run = await run_of(store, claimed.id)
    assert (run.state, run.error) == (State.CANCELLED, None)


async def test_only_the_culprit_of_a_kill_has_timed_out(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job(), immediate_job()], now=T0)
    culprit, bystander = await claim(store, worker)
    await store.declare_lost(worker, Evidence.KILL, culprit=culprit.id, now=NOW)
    await store.rescue(random_value=0.5, now=NOW)

    guilty, innocent = await run_of(store, culprit.id), await run_of(store, bystander.id)
    assert (guilty.state, guilty.spent, guilty.deaths) == (State.RETRYING, 1, 0)
    assert guilty.ready_at == NOW + 2 * SECOND
    assert json.loads(guilty.attempts or "")[0]["outcome"] == "timed_out"
    assert (innocent.state, innocent.spent, innocent.deaths) == (State.QUEUED, 1, 0)


async def test_a_rescued_run_keeps_its_place_and_its_next_fence_is_higher(store: Store) -> None:
    """B8."""
    worker, claimed = await given_running_run(store)
    behind = await given_job(store, immediate_job(), now=NOW)
    await store.declare_lost(worker, Evidence.STALL, now=T0 + MINUTE)
    await store.rescue(now=T0 + MINUTE)
    heir = await given_worker(store)
    first, second = await claim(store, heir, now=T0 + MINUTE)
    assert (first.id, first.fence, first.attempt, second.id) == (claimed.id, 2, 2, behind)


async def test_what_a_lost_worker_writes_after_the_rescue_is_stale(store: Store) -> None:
    """B9."""
    worker, claimed = await given_running_run(store)
    await store.declare_lost(worker, Evidence.STALL, now=NOW)
    await store.rescue(now=NOW)
    assert await store.finish(worker, [completed(claimed)], now=NOW) == [Verdict.STALE]
    heir = await given_worker(store)
    again = await claim_one(store, heir, now=NOW)
    assert await store.finish(worker, [completed(claimed)], now=NOW) == [Verdict.STALE]
    assert await store.finish(worker, [given_back(claimed, started=True)], now=NOW) == [Verdict.STALE]
    await accept(store, heir, completed(again), now=NOW)


async def test_a_rescue_that_ends_a_run_releases_the_one_held_for_it(store: Store) -> None:
    worker, running, held = await given_run_held_for_overlap(store)
    await cancel(store, running.id)
    await store.declare_lost(worker, Evidence.DEATH, now=T0 + 3 * MINUTE)
    await store.rescue(now=T0 + 3 * MINUTE)
    assert await state_of(store, held) is State.QUEUED


async def test_a_rescue_is_bounded_and_goes_on(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(5)], now=T0)
    await claim(store, worker)
    await store.declare_lost(worker, Evidence.DEATH, now=NOW)
    assert [len(await store.rescue(limit=2, now=NOW)) for _ in range(4)] == [2, 2, 1, 0]


async def test_two_rescuers_rescue_each_run_once(store: Store, other: Store) -> None:
    """B5, B8: a loss is counted once."""
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(30)], now=T0)
    held = await claim(store, worker)
    await store.declare_lost(worker, Evidence.DEATH, now=NOW)
    first, second = await asyncio.gather(store.rescue(now=NOW), other.rescue(now=NOW))
    rest = await store.rescue(now=NOW)
    rescued: list[UUID] = [one.run_id for one in (*first, *second, *rest)]
    assert sorted(rescued) == sorted(one.id for one in held)
    assert {(await run_of(store, run_id)).spent for run_id in rescued} == {1}


async def test_a_rescue_and_a_finish_at_once_leave_one_end(store: Store, other: Store) -> None:
    """B1."""
    for _ in range(15):
        worker, claimed = await given_running_run(store)
        await store.declare_lost(worker, Evidence.DEATH, now=NOW)
        [verdict], rescued = await asyncio.gather(
            store.finish(worker, [completed(claimed)], now=NOW), other.rescue(now=NOW)
        )
        assert (verdict is Verdict.ACCEPTED) != bool(rescued)
        expected = State.COMPLETED if verdict is Verdict.ACCEPTED else State.QUEUED
        assert await state_of(store, claimed.id) is expected
        await cancel(store, claimed.id)
