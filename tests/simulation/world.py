"""One simulated cluster from one seed: processes, clients, faults, then healing and the wait for liveness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.core.ids import uuid7
from mainspring.core.model import SECOND, Instant
from mainspring.core.model import Evidence as Cause
from mainspring.core.states import State
from mainspring.observe.events import Bus
from mainspring.ports.store import Store
from mainspring.scheduler.scheduler import Scheduler
from mainspring.scheduler.settings import SchedulerSettings
from mainspring.stores.memory import MemoryStore
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.worker import Worker
from tests.simulation.clients import Client
from tests.simulation.evidence import Evidence
from tests.simulation.loop import Process, SimulatedLoop, current_process
from tests.simulation.lossy import LossyStore, Network, Weather
from tests.simulation.tasks import Handlers

EPOCH: Instant = 1_800_000_000 * SECOND


@dataclass(frozen=True, slots=True)
class Options:
    """Drawn from the seed; spans in seconds."""

    schedulers: int
    workers: int
    slots: int
    lease: float
    faulty_for: float
    jobs: int
    weather: Weather
    keeper_reports: float
    crash_every: float
    pause_every: float
    outage_every: float
    cut_off_every: float
    own_signs: bool

    @classmethod
    def drawn(cls, random: Random) -> Options:
        return cls(
            schedulers=random.randint(1, 3),
            workers=random.randint(1, 3),
            slots=random.randint(1, 4),
            lease=random.choice([2.0, 4.0, 6.0]),
            faulty_for=random.choice([30.0, 45.0, 60.0]),
            jobs=random.randint(30, 80),
            weather=Weather(
                error_before=random.choice([0.0, 0.01, 0.05]),
                error_after=random.choice([0.0, 0.01, 0.05]),
                delay=random.choice([0.001, 0.01, 0.05]),
                crash_at_verb=random.choice([0.0, 0.0, 0.0005, 0.002]),
                hint_lost=random.choice([0.0, 0.1, 0.5]),
                hint_doubled=random.choice([0.0, 0.2]),
            ),
            keeper_reports=random.choice([0.0, 0.5, 1.0]),
            crash_every=random.choice([0.0, 10.0, 20.0]),
            pause_every=random.choice([0.0, 15.0, 30.0]),
            outage_every=random.choice([0.0, 20.0, 40.0]),
            cut_off_every=random.choice([0.0, 20.0, 40.0]),
            own_signs=random.random() < 0.3,
        )


class SimulatedClock:
    """A host's own monotonic clock: its own zero, its own rate; random numbers from the seed."""

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self._loop = loop
        self._random = Random(random.random())
        self._zero = random.random() * 1_000_000
        self._rate = 1.0 + (random.random() - 0.5) * 0.002

    def monotonic(self) -> float:
        return self._zero + self._loop.time() * self._rate

    def random(self) -> float:
        return self._random.random()

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


@dataclass(slots=True)
class Running:
    """A live process and what it runs."""

    process: Process
    kind: str
    worker: Worker | None = None
    task: asyncio.Task[Any] | None = None


@dataclass(slots=True)
class World:
    loop: SimulatedLoop
    random: Random
    options: Options
    plant: Callable[[MemoryStore], None] = lambda _: None
    settings_plant: Callable[[WorkerSettings], WorkerSettings] = lambda settings: settings
    evidence: Evidence = field(default_factory=Evidence)
    running: dict[str, Running] = field(default_factory=dict)
    keep: list[Any] = field(default_factory=list)
    memory: MemoryStore = field(init=False)
    network: Network = field(init=False)
    healing: bool = False
    generation: int = 0

    def __post_init__(self) -> None:
        self.memory = MemoryStore(now=self.now, process_signs=self.options.own_signs)
        self.plant(self.memory)
        self.network = Network(Random(self.random.random()), self.now)
        self.network.weather = self.options.weather

    def now(self) -> Instant:
        return EPOCH + round(self.loop.time() * SECOND)

    def store_for(self, process: Process) -> Store:
        return cast(Store, LossyStore(self.memory, process, self.network, self.evidence, self.crash))

    async def run(self) -> None:
        """Safety phase under faults, then healing, then time enough for everything to come to rest."""
        clients = self._start()
        saboteurs = [asyncio.ensure_future(one) for one in self._saboteurs()]
        self.keep += saboteurs
        await asyncio.sleep(self.options.faulty_for)
        await self._heal(saboteurs, clients)
        await asyncio.sleep(self._rest())
        await self._work_off()
        self.evidence.finished_at = self.now()

    def crash(self, process: Process) -> None:
        """The process is gone between two steps; its supervisor starts another, its keeper may say so."""
        running = self.running.pop(process.name, None)
        if running is None or not process.alive:
            return
        self.evidence.counts[f"crash_{running.kind}"] += 1
        if running.worker is not None:
            self.memory.drop_sign(running.worker.id)
            self._report_death(running.worker)
        self.keep.append(running)
        self.loop.crash(process)
        self._later(0.2 + self.random.random() * 2, lambda: self._spawn(running.kind))

    # --- starting ----------------------------------------------------------------------------------------------

    def _start(self) -> list[Client]:
        for _ in range(self.options.schedulers):
            self._spawn("scheduler")
        for _ in range(self.options.workers):
            self._spawn("worker")
        client = Client(self, Process("client"), Random(self.random.random()))
        self.loop.spawn(client.process, lambda: self.keep.append(asyncio.ensure_future(client.run(), loop=self.loop)))
        return [client]

    def _spawn(self, kind: str) -> None:
        self.generation += 1
        process = Process(f"{kind}-{self.generation}")
        self.running[process.name] = running = Running(process, kind)
        start = self._start_worker if kind == "worker" else self._start_scheduler
        self.loop.spawn(process, lambda: start(running))

    def _start_scheduler(self, running: Running) -> None:
        clock = SimulatedClock(self.loop, self.random)
        settings = SchedulerSettings(member_silent_after=3.0, upkeep_every=600.0)
        scheduler = Scheduler(self.store_for(running.process), clock, Bus(), settings, host=running.process.name)
        running.task = self._keep_running(running, scheduler.run())

    def _start_worker(self, running: Running) -> None:
        clock = SimulatedClock(self.loop, self.random)
        lease = round(self.options.lease * SECOND)
        settings = self.settings_plant(
            WorkerSettings(
                slots=self.options.slots,
                lease=lease,
                beat=lease // 10,
                stall=lease // 3,
                drain=5 * SECOND,
                host=running.process.name,
                pid=self.generation,
            )
        )
        handlers = Handlers(
            running.process, lambda: worker.id, self.evidence, Random(self.random.random()), self.now, self.crash
        )
        worker = Worker(self.store_for(running.process), handlers.registry(), clock, Bus(), settings)
        running.worker = worker
        running.task = self._keep_running(running, worker.run())

    def _keep_running(self, running: Running, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work, loop=self.loop)

        def ended(done: asyncio.Task[Any]) -> None:
            if not done.cancelled() and (error := done.exception()) is not None:
                self.evidence.counts["bug"] += 1
                self.keep.append(error)
                raise error
            self.crash(running.process)

        task.add_done_callback(ended)
        return task

    # --- sabotage ----------------------------------------------------------------------------------------------

    def _saboteurs(self) -> list[Coroutine[Any, Any, None]]:
        options = self.options
        kinds = (
            (options.crash_every, self._crash_one),
            (options.pause_every, self._pause_one),
            (options.outage_every, self._outage),
            (options.cut_off_every, self._cut_off_one),
        )
        return [self._repeat(every, act) for every, act in kinds if every]

    async def _repeat(self, every: float, act: Callable[[], None]) -> None:
        while not self.healing:
            await asyncio.sleep(every * (0.5 + self.random.random()))
            if not self.healing:
                act()

    def _crash_one(self) -> None:
        self.crash(self._victim().process)

    def _pause_one(self) -> None:
        running = self._victim()
        process = running.process
        span = self.options.lease * self.random.choice([0.2, 0.8, 2.0])
        if running.worker is not None:
            self._stop_sign(running.worker.id, span)
        process.paused_until = self.loop.time() + span
        self.evidence.pauses.append((process.name, self.now(), self.now() + round(span * SECOND)))
        self.evidence.counts["pause"] += 1

    def _stop_sign(self, worker: UUID, span: float) -> None:
        self.memory.stop_sign(worker)
        self._later(span, lambda: self.memory.stop_sign(worker, stopped=False))

    def _outage(self) -> None:
        span = self.options.lease * self.random.choice([0.3, 1.5])
        self.network.outage_until = self.now() + round(span * SECOND)
        self.evidence.outages.append((self.now(), self.network.outage_until))
        self.evidence.counts["outage"] += 1

    def _cut_off_one(self) -> None:
        span = self.options.lease * self.random.choice([0.3, 2.5])
        self.network.cut_off[self._victim().process.name] = self.now() + round(span * SECOND)
        self.evidence.counts["cut_off"] += 1

    def _victim(self) -> Running:
        return self.random.choice(list(self.running.values()))

    def _report_death(self, worker: Worker) -> None:
        self.evidence.deaths[worker.id] = self.now()
        if self.random.random() < self.options.keeper_reports:
            self._later(0.05, lambda: self.keep.append(asyncio.ensure_future(self._declare_dead(worker.id))))

    async def _declare_dead(self, worker: UUID) -> None:
        store = self.store_for(Process("keeper"))
        for _ in range(100):
            try:
                await store.declare_lost(worker, Cause.DEATH)
                await store.rescue()
                return
            except WorldError:
                await asyncio.sleep(0.3)

    # --- healing -----------------------------------------------------------------------------------------------

    async def _heal(self, saboteurs: Sequence[asyncio.Future[None]], clients: list[Client]) -> None:
        self.healing = True
        for saboteur in saboteurs:
            saboteur.cancel()
        self.network.heal()
        for running in self.running.values():
            running.process.paused_until = 0.0
        self.evidence.healed_at = self.now()
        for client in clients:
            client.stop()

    def _rest(self) -> float:
        """Longer than any lease, sweep, backoff and timeout in use, three times over."""
        return 3 * self.options.lease + 60.0

    async def _work_off(self) -> None:
        """A cluster with few slots gets time for its backlog, as long as that shrinks."""
        for _ in range(20):
            before = self._backlog()
            if not before:
                return
            await asyncio.sleep(30)
            if self._backlog() >= before:
                return

    def _backlog(self) -> int:
        old = self.now() - 3 * SECOND
        runs = self.memory.memory.tables.runs.values()
        return sum(run.state is State.QUEUED and run.ready_at < old for run in runs)

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        self.loop.call_later(seconds, act, context=Context())

    def fresh_id(self, random: Random) -> UUID:
        return uuid7(self.now(), random.randbytes(10))

    @property
    def process(self) -> Process:
        return current_process.get()
