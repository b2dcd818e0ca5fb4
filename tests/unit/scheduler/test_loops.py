"""Each loop of a scheduler by its step, on the memory store and a clock that stands still until it is moved."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import pytest

from mainspring.core.ids import uuid7
from mainspring.core.model import (
    SECOND,
    Evidence,
    Instant,
    JobFilter,
    Kind,
    Lane,
    NewJob,
    RunFilter,
    TaskInfo,
    WorkerInfo,
)
from mainspring.core.states import State
from mainspring.observe.events import Bus, Event, RunsFired, RunsRescued, WorkerLost
from mainspring.ports.store_time import StoreTime
from mainspring.scheduler.janitor import Promoter, Rescuer
from mainspring.scheduler.planner import Planner
from mainspring.scheduler.settings import SchedulerSettings
from mainspring.scheduler.watch import Watch
from mainspring.stores.memory import MemoryStore

BEGIN: Instant = 1_800_000_000 * SECOND
LANE = Lane("default", "default", "work")


@dataclass
class StandingClock:
    """Moves when told; store time is the same plus the beginning."""

    seconds: float = 100.0
    chance: Random = field(default_factory=lambda: Random(1))

    def monotonic(self) -> float:
        return self.seconds

    def random(self) -> float:
        return self.chance.random()

    def random_bytes(self, count: int) -> bytes:
        return self.chance.randbytes(count)

    def store_now(self) -> Instant:
        return BEGIN + round(self.seconds * SECOND)


@dataclass
class House:
    clock: StandingClock
    store: MemoryStore
    bus: Bus
    events: list[Event]
    settings: SchedulerSettings = field(default_factory=SchedulerSettings)

    def identity(self) -> UUID:
        return uuid7(self.clock.store_now(), self.clock.random_bytes(10))

    def planner(self) -> Planner:
        store_time = StoreTime(self.store, self.clock)
        return Planner(self.store, store_time, self.clock, self.bus, self.settings, self.identity())

    async def submit(self, *, after: float, every: float | None = None, priority: int = 50) -> UUID:
        due = self.clock.store_now() + round(after * SECOND)
        job = NewJob(
            self.identity(),
            LANE,
            kind=Kind.DELAYED if every is None else Kind.RECURRING,
            priority=priority,
            document=None if every is None else json.dumps({"every": every}),
            next_at=due,
            scheduled_at=due,
        )
        await self.store.submit([job])
        return job.id

    async def worker(self, identity: UUID) -> None:
        info = WorkerInfo(identity, "host", 1, (), 10, "0", 30 * SECOND)
        await self.store.register(info, [TaskInfo("work")])

    async def queued(self) -> int:
        return len(await self.store.list_runs(RunFilter(status=("queued",)), limit=1000))


@pytest.fixture
async def house() -> House:
    clock = StandingClock()
    store = MemoryStore(now=clock.store_now)
    bus = Bus()
    events: list[Event] = []
    bus.subscribe(events.append)
    house = House(clock, store, bus, events)
    await store.open()
    await house.worker(UUID(int=99))
    return house


async def test_the_planner_waits_exactly_until_the_next_instant(house: House) -> None:
    await house.submit(after=0.4)
    wait = await house.planner().step(house.clock.seconds)
    assert wait == pytest.approx(0.4)
    assert await house.queued() == 0


async def test_what_is_due_is_fired_in_one_batch(house: House) -> None:
    planner = house.planner()
    for _ in range(50):
        await house.submit(after=0.5)
    await planner.step(house.clock.seconds)
    house.clock.seconds += 0.5
    await planner.step(house.clock.seconds)
    assert await house.queued() == 50
    fired = [event for event in house.events if isinstance(event, RunsFired)]
    assert [len(event.runs) for event in fired] == [50]


async def test_a_recurring_job_is_fired_again_from_memory(house: House) -> None:
    planner = house.planner()
    await house.submit(after=0.25, every=0.25)
    waits = []
    for _ in range(4):
        waits.append(await planner.step(house.clock.seconds))
        house.clock.seconds += 0.25
    assert all(wait <= 0.25 for wait in waits)
    assert len(await house.store.list_runs(RunFilter(), limit=100)) >= 2


async def test_two_planners_fire_an_occurrence_once(house: House) -> None:
    one, two = house.planner(), house.planner()
    await house.submit(after=0.5)
    await one.step(house.clock.seconds)
    await two.step(house.clock.seconds)
    house.clock.seconds += 0.6
    await one.step(house.clock.seconds)
    await two.step(house.clock.seconds)
    assert await house.queued() == 1


async def test_the_sweep_finds_what_no_owner_fired(house: House) -> None:
    planner = house.planner()
    await house.submit(after=0.5)
    house.clock.seconds += 1.0
    await planner.sweep(house.clock.seconds)
    assert await house.queued() == 0
    house.clock.seconds += 0.6
    await planner.sweep(house.clock.seconds)
    assert await house.queued() == 1


async def test_a_job_that_cannot_be_planned_rests_and_does_not_stop_the_others(house: House) -> None:
    planner = house.planner()
    broken = await house.submit(after=0.1, every=1)
    house.store.memory.tables.jobs[broken].document = '{"cron": "not a cron"}'
    await house.submit(after=0.1)
    house.clock.seconds += 0.2
    await planner.step(house.clock.seconds)
    assert await house.queued() == 1
    assert len(await house.store.list_jobs(JobFilter())) == 2


async def test_silence_for_a_lease_is_declared_and_rescued(house: House) -> None:
    worker = UUID(int=5)
    await house.worker(worker)
    await house.store.submit([NewJob(house.identity(), LANE)])
    claimed = await house.store.claim(worker, tasks=["work"], queues=None, count=1)
    watch = Watch(house.store, house.bus, house.settings)
    for _ in range(62):
        await house.store.beat([UUID(int=99)])
        await watch.step(house.clock.seconds)
        house.clock.seconds += 0.5
    assert [(event.worker, event.evidence) for event in house.events if isinstance(event, WorkerLost)] == [
        (worker, Evidence.SILENCE.value)
    ]
    await Rescuer(house.store, house.clock, house.bus, house.settings).step(house.clock.seconds)
    run = (await house.store.runs([claimed[0].id]))[0]
    assert run is not None
    assert (run.state, run.spent) == (State.QUEUED, 1)
    assert any(isinstance(event, RunsRescued) for event in house.events)


async def test_the_promoter_sleeps_until_the_next_retry(house: House) -> None:
    promoter = Promoter(house.store, StoreTime(house.store, house.clock), house.bus, house.settings)
    assert await promoter.step(house.clock.seconds) == house.settings.idle_every


async def test_only_a_change_in_what_has_been_seen_makes_the_planner_look_again(house: House) -> None:
    planner = house.planner()
    await planner.step(house.clock.seconds)
    far = house.clock.store_now() + 60 * SECOND
    assert planner.rescan(far) is False
    await house.submit(after=0.3)
    house.clock.seconds += 0.02
    assert await planner.step(house.clock.seconds) > 0.5
    assert planner.rescan(house.clock.store_now()) is True
    assert await planner.step(house.clock.seconds) == pytest.approx(0.28)


async def test_a_second_loop_fires_what_falls_due_beside_the_first(house: House) -> None:
    planner = house.planner()
    await house.submit(after=0.5)
    await planner.step(house.clock.seconds)
    assert await planner.step_fire(house.clock.seconds) == pytest.approx(0.5)
    house.clock.seconds += 0.5
    await planner.step_fire(house.clock.seconds)
    assert await house.queued() == 1


async def test_the_sweep_leaves_alone_what_is_at_hand(house: House) -> None:
    planner = house.planner()
    await house.submit(after=0.5)
    await planner.step(house.clock.seconds)
    house.clock.seconds += 3
    await planner.sweep(house.clock.seconds)
    assert await house.queued() == 0
    await planner.step_fire(house.clock.seconds)
    assert await house.queued() == 1
