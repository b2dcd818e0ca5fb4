"""A worker process's whole life: registered, fed, drained, gone."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from mainspring.core.errors import SchemaError, WorldError
from mainspring.core.ids import uuid7
from mainspring.core.model import SECOND, BeatAnswer, WorkerInfo
from mainspring.observe import events
from mainspring.observe.loop import BACKOFF_FIRST, BACKOFF_LONGEST, Loop
from mainspring.ports.clock import Clock
from mainspring.ports.store import Hint, Store, Topic
from mainspring.ports.store_time import StoreTime
from mainspring.tasks.registry import Hook, Registry
from mainspring.worker.completer import Completer
from mainspring.worker.executor import Executor
from mainspring.worker.feed import Feed
from mainspring.worker.keeping import Keeping
from mainspring.worker.lease import Lease
from mainspring.worker.logbook import CAPTURE, LogBook
from mainspring.worker.outcome import Cause
from mainspring.worker.settings import REPLACE, WorkerSettings
from mainspring.worker.surroundings import Surroundings

_AT_ONCE = 1.0  # seconds that a second request to stop leaves to handlers that are being cancelled
_LAST_WORDS = 5.0  # seconds for the last call of a loop, and for logs
_SLACK = 1.0

THREADS_LOST = "threads lost"  # why a worker drains of itself


class Worker:
    """`run()` answers an exit code: 0, or REPLACE where another process should be started in its place.

    Where `must_exit_hard` is true afterwards, something still runs that only `os._exit` can stop.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Clock,
        bus: events.Bus,
        settings: WorkerSettings,
        keeper: Keeping | None = None,
    ) -> None:
        self._around = Surroundings(store, clock, bus, settings, StoreTime(store, clock), UUID(int=0))
        self._registry = registry
        self._keeper = keeper
        self._stop_asked = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._changed = asyncio.Event()
        self._replace = False
        self._next_id: UUID | None = None
        self.must_exit_hard = False

    @property
    def id(self) -> UUID:
        return self._around.worker

    def request_stop(self, *, replace: bool = False) -> None:
        """Drains and stops; a second call stops at once."""
        if self._stop_asked.is_set() and not replace:
            self._stop_now.set()
        self._replace = self._replace or replace
        self._stop_asked.set()
        self._changed.set()

    async def run(self) -> int:
        self._build()
        CAPTURE.install()
        tasks: list[asyncio.Task[None]] = []
        unsubscribe = self._around.store.subscribe(self._hear)
        try:
            await _call_hooks(self._registry.on_start)
            if await self._enter():
                self._executor.start()
                tasks = [asyncio.create_task(loop.run(), name=f"mainspring {loop.name}") for loop in self._loops]
                await self._stop_asked.wait()
                await self._leave(tasks)
            await _call_hooks(self._registry.on_stop)
        finally:
            unsubscribe()
            CAPTURE.uninstall()
            for task in tasks:
                task.cancel()
            await self._executor.close()
            if self._keeper is not None:
                self._keeper.close()
        return REPLACE if self._replace else 0

    # --- orders from the store, the keeper, hints ---------------------------------------------------------------

    def drain(self) -> None:
        if not self._stop_asked.is_set():
            self.request_stop()

    async def begin_anew(self) -> None:
        around = self._around
        before, dropped = around.worker, self._completer.drop_all() + len(self._executor.withdraw())
        self._executor.ask_all(Cause.REVOKED)
        await self._register()
        around.bus.publish(events.WorkerRevoked(before, around.worker, dropped))
        self._feed_loop.wake()

    def acknowledged(self, worker: UUID, sent: float, answer: BeatAnswer) -> None:
        """The keeper has renewed for this process (or, where nothing is to be renewed, has asked)."""
        if not answer.known:
            self._lease.revoke(worker)
            self._lease_loop.wake()
            return
        if worker != self.id:
            return
        self._lease.acknowledge_by_keeper(sent)
        self._lease.obey(answer)

    def kept(self, pid: int) -> None:
        self._around.bus.publish(events.KeeperStarted(self.id, pid))

    def unkept(self) -> None:
        self._lease.unkept()
        self._lease_loop.wake()

    def current(self, task: asyncio.Task[Any] | None) -> tuple[UUID, int] | None:
        return self._executor.current(task)

    def _hear(self, hint: Hint) -> None:
        if hint.topic is Topic.READY:
            if self._feed.hint(hint.key):
                self._feed_loop.wake()
        elif hint.topic is Topic.WORKER and hint.key == str(self.id):
            self._lease.ask_now()
            self._lease_loop.wake()

    def _count_lost_threads(self) -> None:
        """At half the slots lost to threads that do not end, another process does better."""
        self._changed.set()
        if not self._replace and self._executor.lost_threads * 2 >= self._around.settings.slots:
            self._replace = True
            self.drain()

    # --- beginning ----------------------------------------------------------------------------------------------

    def _build(self) -> None:
        around = self._around
        names = ("feed", "finish", "lease", "guard", "log", "progress")
        self._loops = [Loop(name, clock=around.clock, bus=around.bus) for name in names]
        self._feed_loop, finish_loop, self._lease_loop, guard_loop, log_loop, progress_loop = self._loops
        self._log = LogBook(around, wake=log_loop.wake, wake_progress=progress_loop.wake)
        self._completer = Completer(around, wake=finish_loop.wake, on_flushed=self._changed.set)
        self._executor = Executor(
            around,
            self._registry,
            sink=self._log,
            deliver=self._completer.deliver,
            want_more=self._feed_loop.wake,
        )
        self._executor.on_change = self._changed.set
        self._executor.on_abandoned = self._count_lost_threads
        self._feed = Feed(around, self._executor, self._completer, tasks=self._registry.names())
        self._lease = Lease(around, self._executor, self)
        self._feed.holds_right = self._lease.holds_right
        self._feed_loop.step = self._feed.step
        finish_loop.step = self._completer.step
        self._lease_loop.step = self._lease.step
        guard_loop.step = self._lease.step_guard
        log_loop.step = self._log.step
        progress_loop.step = self._log.step_progress

    async def _enter(self) -> bool:
        """Registers, however long the store takes to answer; False where a stop was asked before."""
        around, backoff, lost = self._around, BACKOFF_FIRST, False
        while not self._stop_asked.is_set():
            try:
                await self._register()
            except SchemaError:
                raise
            except WorldError as error:
                if not lost:
                    around.bus.publish(events.StoreLost("register", str(error)))
                lost = True
                backoff = min(BACKOFF_LONGEST, backoff * (1 + 2 * around.clock.random()))
                await self._until(self._stop_asked.is_set, backoff)
                continue
            queues = around.settings.queues or ()
            around.bus.publish(
                events.WorkerStarted(
                    around.worker, around.settings.host, around.settings.slots, queues, self._registry.names()
                )
            )
            if self._keeper is not None:
                self._executor.board = self._keeper.start(self, around.worker)
            return True
        return False

    async def _register(self) -> None:
        """Takes an id of the store's time; its sign of life is held before anybody can look for it."""
        around, settings = self._around, self._around.settings
        sent = around.clock.monotonic()
        now = await around.store.now()
        around.store_time.sample(sent, around.clock.monotonic(), now)
        # A registration whose reply was lost is repeated under its id, so that no empty row is left behind.
        worker = self._next_id = self._next_id or uuid7(now, around.clock.random_bytes(10))
        if around.store.capabilities.process_signs:
            await around.store.hold_sign(worker)
        sent = around.clock.monotonic()
        info = WorkerInfo(
            worker,
            settings.host,
            settings.pid,
            settings.queues or (),
            settings.slots,
            settings.version,
            settings.lease,
            namespace=settings.namespace,
        )
        await around.store.register(info, [task.info() for task in self._registry])
        around.worker, self._next_id = worker, None
        self._lease.acknowledge(sent)
        if self._keeper is not None:
            self._keeper.announce(worker)

    # --- ending -------------------------------------------------------------------------------------------------

    async def _leave(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """The drain: nothing new, what has not started is given back, what has started gets its time."""
        around = self._around
        around.bus.publish(events.WorkerDraining(self.id, THREADS_LOST if self._replace else "stop requested"))
        telling = asyncio.create_task(self._tell_that_it_drains(), name="mainspring draining")
        self._feed.stopped = True
        self._feed_loop.stop()
        await asyncio.wait(tasks[:1], timeout=_LAST_WORDS)
        self._feed.give_back(self._executor.withdraw())
        await self._until(lambda: self._executor.active == 0 or self._stop_now.is_set(), around.settings.drain / SECOND)
        if self._executor.active:
            await self._stop_handlers()
        await self._until(lambda: self._completer.pending == 0, around.settings.lease / SECOND)
        await self._flush_log()
        self.must_exit_hard = self._executor.unstoppable
        await asyncio.wait([telling], timeout=_SLACK)
        telling.cancel()
        if self._executor.unreported or self._completer.pending:
            # Whoever takes these runs over must not start before the threads are gone: the keeper tells, afterwards.
            if self._keeper is not None:
                self._keeper.drain()
        else:
            await self._deregister()
        around.bus.publish(events.WorkerStopped(self.id))

    async def _tell_that_it_drains(self) -> None:
        """For whoever lists the workers: where the store is away, the drain goes on without being seen."""
        with contextlib.suppress(WorldError):
            await self._around.store.drain(self.id)

    async def _stop_handlers(self) -> None:
        self._executor.ask_all(Cause.RELEASE)
        grace = self._executor.longest_grace() + _SLACK
        await self._until(lambda: self._executor.stoppable == 0 or self._stop_now.is_set(), grace)
        if self._executor.stoppable:
            await self._until(lambda: self._executor.stoppable == 0, _AT_ONCE)

    async def _flush_log(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS):
                while self._log.pending:
                    moment = self._around.clock.monotonic()
                    await self._log.step(moment)
                    await self._log.step_progress(moment)
        except (WorldError, TimeoutError):
            return  # best effort, as all logs are

    async def _deregister(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._around.store.deregister(self.id)
        except (WorldError, TimeoutError):
            pass  # it holds nothing, so nobody waits for it; upkeep removes the row
        if self._keeper is not None:
            self._keeper.bye()

    async def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return


async def _call_hooks(hooks: Sequence[Hook]) -> None:
    for hook in hooks:
        answer = hook()
        if inspect.isawaitable(answer):
            await answer
