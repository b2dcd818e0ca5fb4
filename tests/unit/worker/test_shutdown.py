"""A drain spends nothing: what has not started is given back, what has gets its time, and no thread ever runs twice."""

import asyncio
import json
import threading

import pytest

from mainspring.core.model import SECOND, Run
from mainspring.core.states import State
from mainspring.observe import events
from mainspring.worker.settings import WorkerSettings
from tests.unit.worker.harness import House, passing, virtually

BRIEF = WorkerSettings(slots=2, drain=5 * SECOND)


async def slow(seconds: float = 60) -> str:
    await passing(seconds)
    return "done"


async def quick() -> None: ...


def test_what_ends_within_the_drain_is_recorded() -> None:
    async def scenario() -> tuple[Run, int, float]:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker(BRIEF)
            (run_id,) = await house.submit("slow", payload={"seconds": 3})
            await passing(0.5)
            code = await house.stop(worker)
            return await house.run(run_id), code, house.clock.monotonic()

    run, code, at = virtually(scenario())
    assert (run.state, code) == (State.COMPLETED, 0)
    assert at < 3.2


@pytest.mark.parametrize(
    ("on_lost", "state", "spent", "outcome"),
    [("retry", State.QUEUED, 0, "released"), ("fail", State.FAILED, 1, "lost"), ("hold", State.UNKNOWN, 1, "lost")],
)
def test_at_its_end_on_lost_decides(on_lost: str, state: State, spent: int, outcome: str) -> None:
    async def scenario() -> tuple[Run, float, list[str]]:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker(BRIEF, kept=True)
            (run_id,) = await house.submit("slow", on_lost=on_lost)
            await passing(0.5)
            await house.stop(worker)
            assert not worker.must_exit_hard
            return await house.run(run_id), house.clock.monotonic(), house.keeper.told

    run, at, told = virtually(scenario())
    assert (run.state, run.spent) == (state, spent)
    assert 5.5 <= at < 6
    assert json.loads(run.attempts or "[]")[-1]["outcome"] == outcome if run.attempts else state is State.FAILED
    assert told[-2:] == ["bye", "close"]


def test_a_worker_that_drains_is_listed_so() -> None:
    async def scenario() -> list[bool]:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker(BRIEF)
            (run_id,) = await house.submit("slow", payload={"seconds": 3})
            await passing(0.5)
            before = [info.draining for info in await house.store.workers()]
            worker.request_stop()
            await passing(0.1)
            during = [info.draining for info in await house.store.workers()]
            await house.ended(run_id)
            return before + during

    assert virtually(scenario()) == [False, True]


def test_what_has_not_started_is_given_back_at_once() -> None:
    async def scenario() -> tuple[list[Run], float]:
        async with House() as house:
            house.registry.add(slow)
            house.registry.add(quick)
            worker = await house.worker(WorkerSettings(slots=1, drain=5 * SECOND, stuck_after=60 * SECOND))
            for run_id in await house.submit("quick", count=40):
                await house.ended(run_id)
            await house.submit("slow")
            waiting = await house.submit("quick", count=5)
            await house.until(lambda: len(worker._executor.queue) == 5)
            worker.request_stop()
            await house.until(lambda: sum(not ending.started for ending in house.store.sent) == 5, within=1)
            at = house.clock.monotonic()
            return [await house.run(run_id) for run_id in waiting], at

    runs, _ = virtually(scenario())
    assert [(run.state, run.attempt) for run in runs] == [(State.QUEUED, 0)] * 5


def test_a_second_request_stops_at_once() -> None:
    async def scenario() -> tuple[Run, float]:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker()
            (run_id,) = await house.submit("slow")
            await passing(1)
            worker.request_stop()
            await passing(1)
            await house.stop(worker)
            return await house.run(run_id), house.clock.monotonic()

    run, at = virtually(scenario())
    assert run.state is State.QUEUED
    assert at < 2.5


def test_a_thread_left_running_is_told_of_by_the_keeper_alone() -> None:
    async def scenario() -> tuple[Run, bool, list[str], int]:
        release = threading.Event()

        def stuck() -> None:
            release.wait(20)

        async with House() as house:
            house.registry.add(stuck)
            worker = await house.worker(BRIEF, kept=True)
            (run_id,) = await house.submit("stuck")
            await passing(0.5)
            await house.stop(worker)
            run = await house.run(run_id)
            workers = await house.store.workers()
            release.set()
            return run, worker.must_exit_hard, house.keeper.told, len(workers)

    run, hard, told, workers = virtually(scenario())
    assert (run.state, hard) == (State.RUNNING, True)  # still its: nobody may start it while the thread lives
    assert told[-2:] == ["drain", "close"]
    assert workers == 1


def test_a_coroutine_that_will_not_stop_is_left_to_the_keeper_too() -> None:
    async def scenario() -> tuple[Run, bool, list[str]]:
        release: list[bool] = []

        async def stubborn() -> None:
            while not release:
                try:
                    await passing(0.5)
                except asyncio.CancelledError:
                    continue

        async with House() as house:
            house.registry.add(stubborn)
            worker = await house.worker(BRIEF, kept=True)
            (run_id,) = await house.submit("stubborn", cancel_grace="2s")
            await passing(0.5)
            await house.stop(worker)
            release.append(True)
            await passing(1)
            return await house.run(run_id), worker.must_exit_hard, house.keeper.told

    run, hard, told = virtually(scenario())
    assert (run.state, hard, "drain" in told) == (State.RUNNING, True, True)


def test_endings_are_flushed_before_the_worker_goes() -> None:
    async def scenario() -> Run:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker()
            (run_id,) = await house.submit("slow", payload={"seconds": 2})
            await passing(1)
            house.store.down = True
            worker.request_stop()
            await passing(8)
            house.store.down = False
            await house._tasks[0]
            return await house.run(run_id)

    assert virtually(scenario()).state is State.COMPLETED


def test_hooks_run_once_round_the_workers_life() -> None:
    calls: list[str] = []

    async def begin() -> None:
        calls.append("start")

    def end() -> None:
        calls.append("stop")

    async def scenario() -> None:
        async with House() as house:
            house.registry.add(quick)
            house.registry.on_start.append(begin)
            house.registry.on_stop.append(end)
            worker = await house.worker()
            assert calls == ["start"]
            await house.stop(worker)
            assert [type(event) for event in house.events][:1] == [events.WorkerStarted]
            assert isinstance(house.events[-1], events.WorkerStopped)

    virtually(scenario())
    assert calls == ["start", "stop"]


def test_a_stopped_worker_is_gone_from_the_store() -> None:
    async def scenario() -> int:
        async with House() as house:
            house.registry.add(quick)
            await house.stop(await house.worker())
            return len(await house.store.workers())

    assert virtually(scenario()) == 0


def test_endings_that_nobody_took_make_the_end_one_of_a_drain() -> None:
    async def scenario() -> list[str]:
        async with House() as house:
            house.registry.add(slow)
            worker = await house.worker(WorkerSettings(lease=10 * SECOND, beat=SECOND), kept=True)
            await house.submit("slow", payload={"seconds": 1})
            await passing(0.5)
            house.store.down = True
            await house.stop(worker)
            assert house.clock.monotonic() < 20
            return house.keeper.told

    told = virtually(scenario())
    assert "drain" in told
    assert "bye" not in told


def test_a_worker_without_tasks_claims_nothing() -> None:
    async def scenario() -> int:
        async with House() as house:
            worker = await house.worker()
            await passing(10)
            await house.stop(worker)
            return len(house.store.claims)

    assert virtually(scenario()) == 0


def test_a_registration_whose_reply_was_lost_is_repeated_under_its_id() -> None:
    async def scenario() -> tuple[int, bool]:
        async with House() as house:
            house.registry.add(quick)
            house.store.lose_reply_of = "register"
            worker = await house.worker()
            workers = await house.store.workers()
            return len(workers), workers[0].id == worker.id

    assert virtually(scenario()) == (1, True)
