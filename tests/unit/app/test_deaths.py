"""What a supervisor tells the store of a process that ended."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from mainspring.app import deaths
from mainspring.app.deaths import Deaths
from mainspring.core.ids import uuid7
from mainspring.core.model import SECOND, Evidence, Lane, NewJob, TaskInfo, WorkerInfo
from mainspring.core.states import State
from mainspring.observe.events import Bus, Event, RunsRescued, WorkerLost
from mainspring.ports.clock import SystemClock
from mainspring.stores.memory.store import MemoryStore


@dataclass
class Ended:
    worker: UUID | None
    left_threads: bool = False


class Scene:
    """A worker that holds a run, and somebody who hears of its end."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.bus = Bus()
        self.heard: list[Event] = []
        self.bus.subscribe(self.heard.append)
        self.deaths = Deaths(self.store, self.bus)
        self.worker = uuid4()

    async def prepare(self) -> UUID:
        await self.store.open()
        info = WorkerInfo(self.worker, "here", 1, (), 1, "", 30 * SECOND)
        now = await self.store.register(info, [TaskInfo("work")])
        job = uuid7(now, SystemClock().random_bytes(10))
        await self.store.submit([NewJob(job, Lane("default", "default", "work"))])
        (claimed,) = await self.store.claim(self.worker, tasks=["work"], queues=None, count=1)
        return claimed.id

    async def state_of(self, identity: UUID) -> State:
        (run,) = await self.store.runs([identity])
        assert run is not None
        return run.state


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deaths, "KEEPER_FIRST_SECONDS", 0.0)


async def told(scene: Scene) -> None:
    await asyncio.gather(*scene.deaths.telling)


async def test_a_death_frees_its_runs() -> None:
    scene = Scene()
    run = await scene.prepare()
    scene.deaths.tell(Ended(scene.worker), clean=False)
    await told(scene)
    assert await scene.state_of(run) is State.QUEUED
    assert [type(event) for event in scene.heard] == [WorkerLost, RunsRescued]
    assert scene.heard[0] == WorkerLost(scene.worker, Evidence.DEATH.value)


async def test_a_clean_end_needs_no_word() -> None:
    scene = Scene()
    run = await scene.prepare()
    scene.deaths.tell(Ended(scene.worker), clean=True)
    scene.deaths.tell(Ended(None), clean=False)
    await told(scene)
    assert await scene.state_of(run) is State.RUNNING


async def test_threads_that_only_the_end_stopped_are_told_as_a_drain() -> None:
    scene = Scene()
    await scene.prepare()
    scene.deaths.tell(Ended(scene.worker, left_threads=True), clean=True)
    await told(scene)
    assert scene.heard[0] == WorkerLost(scene.worker, Evidence.DRAIN.value)


async def test_what_the_keeper_told_first_stays() -> None:
    scene = Scene()
    await scene.prepare()
    await scene.store.declare_lost(scene.worker, Evidence.KILL)
    scene.deaths.tell(Ended(scene.worker), clean=False)
    await told(scene)
    assert scene.heard == []
    (info,) = await scene.store.workers(lost=True)
    assert info.evidence == Evidence.KILL
