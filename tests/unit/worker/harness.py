"""A worker on a memory store, in an event loop whose time passes only when nothing else is left to do."""

from __future__ import annotations

import asyncio
import json
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Self, TypeVar
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
from mainspring.core.ids import uuid7
from mainspring.core.model import (
    BeatAnswer,
    Claimed,
    Ending,
    Evidence,
    Instant,
    Lane,
    NewJob,
    Run,
    TaskInfo,
    Verdict,
    WorkerInfo,
)
from mainspring.observe.events import Bus, Event
from mainspring.ports.store_time import StoreTime
from mainspring.stores.memory import MemoryStore
from mainspring.tasks.registry import Registry
from mainspring.worker.keeping import Kept
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.slots import Board
from mainspring.worker.surroundings import Surroundings
from mainspring.worker.worker import Worker

T = TypeVar("T")
EPOCH = 1_800_000_000_000_000  # store time at virtual zero


class _Selector(selectors.SelectSelector):
    """Instead of waiting it moves time on; what threads have to say comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(5)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


class LoopClock:
    """The clock of the running loop; its chance is always the same."""

    def __init__(self) -> None:
        self._counter = 0
        self.monotonic = asyncio.get_running_loop().time

    def random(self) -> float:
        return 0.5

    def random_bytes(self, count: int) -> bytes:
        self._counter += 1
        return self._counter.to_bytes(count, "big")


async def passing(seconds: float) -> None:
    """Lets virtual time pass."""
    loop = asyncio.get_running_loop()
    passed = asyncio.Event()
    timer = loop.call_later(seconds, passed.set)
    try:
        await passed.wait()
    finally:
        timer.cancel()


def virtually(test: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test)


class Store(MemoryStore):
    """Remembers what it was asked, and fails or keeps replies back when told to."""

    def __init__(self, *, process_signs: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        super().__init__(lambda: EPOCH + round(self.loop.time() * 1e6), process_signs=process_signs)
        self.down = False
        self.down_for_reports = False
        self.lose_reply_of: str | None = None
        self.claims: list[tuple[int, bool]] = []
        self.sent: list[Ending] = []
        self.verdicts: list[Verdict] = []
        self.beats = 0
        self.poison: UUID | None = None
        self.cancel_before_finish: UUID | None = None
        self.before_claim_answers: Callable[[], bool] = lambda: False

    def _reachable(self) -> None:
        if self.down:
            raise StoreUnavailable("it is down")

    def _reply(self, verb: str) -> None:
        if self.lose_reply_of == verb:
            self.lose_reply_of = None
            raise StoreUnavailable("the reply was lost", unknown_outcome=True)

    async def claim(
        self,
        worker: UUID,
        *,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        count: int,
        suspects: bool = True,
        bytes_max: int = 8 * 1024 * 1024,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> list[Claimed]:
        self._reachable()
        self.claims.append((count, suspects))
        claimed = await super().claim(worker, tasks=tasks, queues=queues, count=count, suspects=suspects)
        self.before_claim_answers()
        self._reply("claim")
        return claimed

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        self._reachable()
        if any(ending.id == self.poison for ending in endings):
            raise ValueError("no store can take this")
        if self.cancel_before_finish is not None:
            overtaken, self.cancel_before_finish = self.cancel_before_finish, None
            await self.cancel([overtaken])
        verdicts = await super().finish(worker, endings)
        self.sent += endings
        self.verdicts += verdicts
        self._reply("finish")
        return verdicts

    async def beat(
        self, workers: Sequence[UUID], *, keeper: UUID | None = None, now: Instant | None = None
    ) -> list[BeatAnswer]:
        self._reachable()
        self.beats += 1
        return await super().beat(workers, keeper=keeper)

    async def declare_lost(
        self,
        worker: UUID,
        evidence: Evidence,
        *,
        beat: int | None = None,
        culprit: UUID | None = None,
        now: Instant | None = None,
    ) -> bool:
        if self.down_for_reports:
            raise StoreUnavailable("it takes no reports")
        return await super().declare_lost(worker, evidence, beat=beat, culprit=culprit)

    async def register(self, worker: WorkerInfo, tasks: Sequence[TaskInfo], *, now: Instant | None = None) -> Instant:
        self._reachable()
        answer = await super().register(worker, tasks)
        self._reply("register")
        return answer

    async def now(self) -> Instant:
        self._reachable()
        return await super().now()


class Keeper:
    """Notes what a worker tells it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def start(self, kept: Kept, worker: UUID) -> Board:
        self.told.append("start")
        return self

    def announce(self, worker: UUID) -> None:
        self.told.append("announce")

    def drain(self) -> None:
        self.told.append("drain")

    def bye(self) -> None:
        self.told.append("bye")

    def close(self) -> None:
        self.told.append("close")

    def begin(self, run_id: bytes, fence: int, deadline: float, now: float) -> None:
        self.begun = (run_id, fence)

    def beat(self, now: float, nearest_deadline: float) -> None:
        self.nearest = nearest_deadline

    def rest(self) -> None:
        self.told.append("rest")


class House:
    """One store, one registry, and the workers that a test starts."""

    def __init__(self, *, process_signs: bool = False) -> None:
        self.store = Store(process_signs=process_signs)
        self.registry = Registry()
        self.clock = LoopClock()
        self.bus = Bus()
        self.events: list[Event] = []
        self.bus.subscribe(self.events.append)
        self.keeper = Keeper()
        self._counter = 0

    async def __aenter__(self) -> Self:
        await self.store.open()
        self._tasks: list[asyncio.Task[int]] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    def surroundings(self, settings: WorkerSettings | None = None) -> Surroundings:
        chosen = settings or WorkerSettings()
        return Surroundings(self.store, self.clock, self.bus, chosen, StoreTime(self.store, self.clock), UUID(int=9))

    async def worker(self, settings: WorkerSettings | None = None, *, kept: bool = False) -> Worker:
        """Starts one and waits until it is registered."""
        chosen = settings or WorkerSettings()
        worker = Worker(self.store, self.registry, self.clock, self.bus, chosen, self.keeper if kept else None)
        self._tasks.append(asyncio.create_task(worker.run()))
        await self.until(lambda: worker.id.int != 0)
        return worker

    async def stop(self, worker: Worker) -> int:
        worker.request_stop()
        return await self._tasks[-1]

    async def submit(self, task: str, *, payload: object = None, count: int = 1, **document: object) -> list[UUID]:
        return [await self.submit_document(task, payload, document) for _ in range(count)]

    async def submit_document(self, task: str, payload: object, document: Mapping[str, object]) -> UUID:
        self._counter += 1
        identity = uuid7(await self.store.now(), self._counter.to_bytes(10, "big"))
        job = NewJob(
            identity,
            Lane("default", str(document.get("queue", "default")), task),
            payload=json.dumps(payload or {}).encode(),
            document=json.dumps(document, sort_keys=True) if document else None,
        )
        await self.store.submit([job])
        return identity

    async def run(self, run_id: UUID) -> Run:
        run = (await self.store.runs([run_id]))[0]
        assert run is not None
        return run

    async def ended(self, run_id: UUID, *, within: float = 3600) -> Run:
        """The run once it has ended."""

        async def is_ended() -> bool:
            return (await self.run(run_id)).state.ended

        await self.until(is_ended, within=within)
        return await self.run(run_id)

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], *, within: float = 3600) -> None:
        """Lets virtual time pass, a millisecond at a time, until the condition holds."""
        async with asyncio.timeout(within):
            while True:
                answer = condition()
                if answer if isinstance(answer, bool) else await answer:
                    return
                await passing(0.001)

    def heard(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    async def as_worker(self, identity: int, *tasks: str) -> UUID:
        """Registers another worker by hand, so that a test can claim and finish as it."""
        worker = UUID(int=identity)
        info = WorkerInfo(worker, "h", 1, (), 1, "", 30_000_000)
        await self.store.register(info, [TaskInfo(task) for task in tasks])
        return worker
