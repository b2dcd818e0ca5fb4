"""A supervisor over processes that are only said to run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from mainspring.app.child import DRAINED_BY_ORDER
from mainspring.app.supervisor import HEALTHY_AFTER_SECONDS, Supervisor


class Sham:
    """Lives until it is told how to end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ready = asyncio.Event()
        self.leaving = asyncio.Event()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.draining = asyncio.Event()
        self.obeys = True
        self.resumed = 0

    async def wait(self) -> int:
        return await self.ended

    async def drain(self) -> None:
        self.draining.set()
        if self.obeys:
            self.end(0)

    async def stop_now(self) -> None:
        self.end(-9)

    def resume(self) -> None:
        self.resumed += 1

    def kill(self) -> None:
        self.end(-9)

    def end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


class House:
    """A supervisor with what it started."""

    def __init__(self) -> None:
        self.now = 0.0
        self.started: asyncio.Queue[Sham] = asyncio.Queue()
        self.count = 0
        self.supervisor: Supervisor[Sham]
        self.running: asyncio.Task[None]

    def run(self, processes: int = 1, drain_seconds: float = 30.0) -> None:
        self.supervisor = Supervisor(self._start, processes, drain_seconds=drain_seconds, monotonic=lambda: self.now)
        self.running = asyncio.create_task(self.supervisor.run())

    async def _start(self) -> Sham:
        self.count += 1
        sham = Sham(self.count)
        await self.started.put(sham)
        return sham

    async def next(self) -> Sham:
        return await self.started.get()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    yield made
    made.running.cancel()
    await asyncio.gather(made.running, return_exceptions=True)


async def turns(until: Callable[[], bool]) -> None:
    for _ in range(100):
        if until():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to that")


async def test_it_starts_as_many_as_asked(house: House) -> None:
    house.run(processes=3)
    assert {(await house.next()).pid for _ in range(3)} == {1, 2, 3}


async def test_it_is_ready_when_all_are(house: House) -> None:
    house.run(processes=2)
    first, second = await house.next(), await house.next()
    first.ready.set()
    await asyncio.sleep(0)
    assert not house.supervisor.ready.is_set()
    second.ready.set()
    await house.supervisor.ready.wait()


async def test_a_healthy_one_that_dies_is_replaced_at_once(house: House) -> None:
    house.run()
    sham = await house.next()
    sham.ready.set()
    house.now += HEALTHY_AFTER_SECONDS
    sham.end(-9)
    await turns(lambda: house.count == 2)


async def test_one_that_a_run_killed_right_after_its_start_is_replaced_at_once_the_first_time(house: House) -> None:
    house.run()
    sham = await house.next()
    sham.ready.set()
    sham.end(-9)
    await turns(lambda: house.count == 2)


async def test_one_that_cannot_start_is_tried_later(house: House) -> None:
    house.run()
    sham = await house.next()
    sham.end(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert house.count == 1
    await house.next()
    assert house.count == 2


async def test_one_that_was_ordered_to_drain_is_not_replaced(house: House) -> None:
    house.run()
    sham = await house.next()
    sham.ready.set()
    house.now += HEALTHY_AFTER_SECONDS
    sham.end(DRAINED_BY_ORDER)
    await house.running
    assert house.count == 1


async def test_a_drain_waits_for_all_and_replaces_none(house: House) -> None:
    house.run(processes=2)
    first, second = await house.next(), await house.next()
    first.obeys = second.obeys = False
    draining = asyncio.create_task(house.supervisor.drain())
    await first.draining.wait()
    await second.draining.wait()
    first.end(0)
    await asyncio.sleep(0)
    assert not draining.done()
    second.end(0)
    await draining
    await house.running
    assert house.count == 2


async def test_a_stop_at_once_does_not_wait(house: House) -> None:
    house.run()
    sham = await house.next()
    sham.obeys = False
    draining = asyncio.create_task(house.supervisor.drain())
    await sham.draining.wait()
    await house.supervisor.stop_now()
    await draining
    assert sham.ended.result() == -9


async def test_what_was_just_started_when_the_stop_came_is_drained_too(house: House) -> None:
    house.run()
    first = await house.next()
    first.ready.set()
    house.now += HEALTHY_AFTER_SECONDS
    first.obeys = False
    draining = asyncio.create_task(house.supervisor.drain())
    await first.draining.wait()
    first.end(-9)
    await draining
    assert house.count == 1


async def test_one_that_drains_to_be_replaced_has_its_successor_at_once(house: House) -> None:
    house.run()
    first = await house.next()
    first.ready.set()
    first.leaving.set()
    second = await house.next()
    assert not first.ended.done()
    first.obeys = False
    draining = asyncio.create_task(house.supervisor.drain())
    await second.ended
    assert not draining.done()
    first.end(75)
    await draining
    assert house.count == 2


async def test_when_it_goes_on_after_a_stop_so_do_its_processes(house: House) -> None:
    house.run(processes=2)
    children = [await house.next(), await house.next()]
    house.supervisor.resume()
    assert [child.resumed for child in children] == [1, 1]


async def test_replacing_all_drains_them_and_starts_others(house: House) -> None:
    house.run()
    first = await house.next()
    first.ready.set()
    house.now += HEALTHY_AFTER_SECONDS
    await turns(house.supervisor.ready.is_set)
    await house.supervisor.replace_all()
    assert (await house.next()).pid == 2
