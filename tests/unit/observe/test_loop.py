"""The generic runner: waits as asked, is woken, survives a broken world and bugs."""

import asyncio
import itertools

from mainspring.core.errors import StoreUnavailable
from mainspring.observe import events
from mainspring.observe.loop import BACKOFF_LONGEST, Loop, Step
from tests.unit.worker.harness import LoopClock, passing, virtually


def loop_of(step: Step) -> tuple[Loop, list[events.Event]]:
    bus = events.Bus()
    heard: list[events.Event] = []
    bus.subscribe(heard.append)
    loop = Loop("test", clock=LoopClock(), bus=bus)
    loop.step = step
    return loop, heard


def test_it_runs_again_when_the_step_asks() -> None:
    async def scenario() -> list[float]:
        times: list[float] = []

        async def step(now: float) -> float | None:
            times.append(round(now, 6))
            if len(times) == 3:
                loop.stop()
            return 1.5

        loop, _ = loop_of(step)
        await loop.run()
        return times

    assert virtually(scenario()) == [0.0, 1.5, 3.0]


def test_a_wake_up_during_a_step_is_not_lost() -> None:
    async def scenario() -> int:
        calls = 0

        async def step(now: float) -> float | None:
            nonlocal calls
            calls += 1
            if calls == 1:
                loop.wake()
            else:
                loop.stop()
            return None

        loop, _ = loop_of(step)
        await loop.run()
        return calls

    assert virtually(scenario()) == 2


def test_it_backs_off_from_a_broken_world_and_tells_once() -> None:
    async def scenario() -> tuple[list[float], list[events.Event]]:
        times: list[float] = []

        async def step(now: float) -> float | None:
            times.append(now)
            if len(times) < 10:
                raise StoreUnavailable("gone")
            loop.stop()
            return None

        loop, heard = loop_of(step)
        await loop.run()
        return times, heard

    times, heard = virtually(scenario())
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert waits == sorted(waits)
    assert waits[0] < 0.2
    assert 0.5 < waits[-1] <= BACKOFF_LONGEST + 0.001
    assert [type(event) for event in heard] == [events.StoreLost, events.StoreBack]


def test_a_wake_up_does_not_shorten_a_backoff() -> None:
    async def scenario() -> int:
        calls = 0

        async def step(now: float) -> float | None:
            nonlocal calls
            calls += 1
            raise StoreUnavailable("gone")

        loop, _ = loop_of(step)
        running = asyncio.create_task(loop.run())
        for _ in range(100):
            loop.wake()
            await passing(0)
        loop.stop()
        await running
        return calls

    assert virtually(scenario()) == 1


def test_a_bug_is_told_and_the_loop_goes_on() -> None:
    async def scenario() -> list[events.Event]:
        calls = 0

        async def step(now: float) -> float | None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise ZeroDivisionError("planted")
            loop.stop()
            return None

        loop, heard = loop_of(step)
        await loop.run()
        return heard

    heard = virtually(scenario())
    assert isinstance(heard[0], events.StepFailed)
    assert "planted" in heard[0].why


def test_a_stop_ends_a_long_wait() -> None:
    async def scenario() -> float:
        async def step(now: float) -> float | None:
            return 1000.0

        loop, _ = loop_of(step)
        running = asyncio.create_task(loop.run())
        await passing(1)
        loop.stop()
        await running
        return asyncio.get_running_loop().time()

    assert virtually(scenario()) == 1.0
