"""An application whose jobs stay inside a test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from mainspring.app.application import Mainspring
from mainspring.app.connection import Connection
from mainspring.app.schedules import store_schedules
from mainspring.client.direct import Direct
from mainspring.client.views import Json
from mainspring.core.errors import MainspringError
from mainspring.core.model import SECOND, Claimed, Verdict, WorkerInfo
from mainspring.core.times import read_instant
from mainspring.observe.events import Bus
from mainspring.stores.memory import MemoryStore
from mainspring.tasks.codec import to_plain
from mainspring.tasks.registry import Hook
from mainspring.tasks.submitter import JobHandle, Order, Submitter
from mainspring.tasks.task import Task
from mainspring.testing.clock import VirtualClock
from mainspring.testing.handle import SandboxHandle
from mainspring.testing.inline import WORKER, Attempt
from mainspring.testing.submitted import SubmittedJob, mismatch
from mainspring.testing.time import VirtualTime

T = TypeVar("T")
R = TypeVar("R")
Named = Task[..., object, object] | str

START = "2026-01-01T00:00:00Z"
RUNS_MAX = 10_000


class Sandbox:
    """While the block lasts, what the application submits goes to a memory store; nothing happens by itself.

    `run` carries out what is ready, `advance` moves the time and does so at each instant on the way. Both await
    handlers in the running loop; their twins in `_sync` are for tests without one. Handlers are called inline: a sync
    one in no thread, and no timeout ends one, since no time passes meanwhile.
    """

    def __init__(self, app: Mainspring, *, start: str = START) -> None:
        self.app = app
        self._clock = VirtualClock(read_instant(start, "/start"))
        self._store = MemoryStore(self._clock.store_now)
        self.client = Direct(self._store, self._clock, Bus())
        self._connection = Connection(self.client, lent=True)
        self._time = VirtualTime(self.client, self._clock)
        self._submitted: list[SubmittedJob] = []
        self._before: dict[str, Submitter | None] = {}
        self._runner: asyncio.Runner | None = None
        self._started = False

    # --- the block

    def __enter__(self) -> Self:
        for task in self.app.registry:
            self._before[task.name] = task.submitter
            task.submitter = self
        self.at_once(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._started:
                self._in_a_loop(self._call(self.app.registry.on_stop))
        finally:
            self._leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._started:
                await self._call(self.app.registry.on_stop)
        finally:
            self._leave()

    # --- what happens

    @property
    def now(self) -> str:
        """The virtual time."""
        return self._time.text

    async def run(self) -> int:
        """Carries out what is ready, and what becomes ready by that, until nothing is; how many attempts it took."""
        if not self._started:
            self._started = True
            await self._call(self.app.registry.on_start)
        for count in range(RUNS_MAX):
            await self._time.settle()
            claimed = await self._store.claim(WORKER, tasks=self.app.registry.names(), queues=None, count=1)
            if not claimed:
                return count
            await self._carry_out(claimed[0])
        raise MainspringError(f"{RUNS_MAX} attempts in one instant: does a task submit itself?")

    async def advance(self, span: float | str) -> int:
        """Moves the time on, stopping wherever something is due; how many attempts were made."""
        target = self._time.after(span)
        count = await self.run()
        while await self._time.move_to_next(target):
            count += await self.run()
        return count + await self.run()

    def run_sync(self) -> int:
        return self._in_a_loop(self.run())

    def advance_sync(self, span: float | str) -> int:
        return self._in_a_loop(self.advance(span))

    # --- what was submitted, and what came of it

    def submitted(self, task: Named | None = None, /, **arguments: object) -> list[SubmittedJob]:
        """What was submitted so far, in order: of this task, with at least these arguments."""
        plain = {name: _plain(value) for name, value in arguments.items()}
        return [job for job in self._submitted if job.fits(_name_of(task), plain)]

    def assert_submitted(self, task: Named, /, **arguments: object) -> SubmittedJob:
        """The last such job; AssertionError that tells what was submitted if there is none."""
        found = self.submitted(task, **arguments)
        if not found:
            raise AssertionError(mismatch(str(_name_of(task)), arguments, "at least once", self._submitted))
        return found[-1]

    def assert_not_submitted(self, task: Named, /, **arguments: object) -> None:
        if self.submitted(task, **arguments):
            raise AssertionError(mismatch(str(_name_of(task)), arguments, "never", self._submitted))

    def runs(self, task: Named | None = None, *, status: str | None = None) -> list[Json]:
        """The runs and skipped occurrences so far, oldest first, as the API shows them."""
        return self.at_once(self._runs({"task": _name_of(task), "status": status}))

    # --- the submitter of the application's tasks

    async def submit(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        ids = await self._connection.submit(orders)
        for identity, order in zip(ids, orders, strict=True):
            arguments = msgspec.json.decode(order.payload, type=dict[str, object])
            self._submitted.append(SubmittedJob(str(identity), order.task.name, arguments, order.options))
        return [SandboxHandle(self, identity, order.task) for identity, order in zip(ids, orders, strict=True)]

    def submit_sync(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        return self.at_once(self.submit(orders))

    def at_once(self, work: Coroutine[object, None, T]) -> T:
        """Drives a coroutine that waits for nothing, inside a loop or outside: nothing in this store waits."""
        try:
            work.send(None)
        except StopIteration as ended:
            answer: T = ended.value
            return answer
        work.close()
        raise MainspringError("this waits for something: use the method without _sync")

    # --- within

    async def _open(self) -> None:
        await self._store.open()
        info = WorkerInfo(WORKER, "sandbox", 0, (), 1, "", 30 * SECOND)
        await self._store.register(info, [task.info() for task in self.app.registry])
        await store_schedules(self.client, self.app.schedules)

    async def _carry_out(self, claimed: Claimed) -> None:
        attempt = Attempt(claimed, self.app.registry, self._clock)
        ending = await attempt.run()
        if attempt.said is not None:
            await self._store.progress(WORKER, [(claimed.id, claimed.fence, attempt.said)])
        await self._store.append_logs(attempt.lines)
        if (await self._store.finish(WORKER, [ending]))[0] is Verdict.CANCEL_REQUESTED:
            await self._store.finish(WORKER, [attempt.cancelled(ending)])

    async def _runs(self, filters: dict[str, str | None]) -> list[Json]:
        wanted: dict[str, object] = {name: value for name, value in filters.items() if value is not None}
        found: list[Json] = []
        cursor: object = None
        while True:
            page = await self.client.list_runs(**wanted, limit=1000, **({"cursor": cursor} if cursor else {}))
            items = page["items"]
            assert isinstance(items, list)
            found += items
            cursor = page["next"]
            if cursor is None:
                return found[::-1]

    async def _call(self, hooks: Sequence[Hook]) -> None:
        for hook in hooks:
            waiting = hook()
            if inspect.isawaitable(waiting):
                await waiting

    def _in_a_loop(self, work: Coroutine[object, None, T]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            return self._runner.run(work)
        except RuntimeError:
            work.close()
            raise

    def _leave(self) -> None:
        for task in self.app.registry:
            task.submitter = self._before.get(task.name, task.submitter)
        if self._runner is not None:
            self._runner.close()
        self._runner = None


def _name_of(task: Named | None) -> str | None:
    return task.name if isinstance(task, Task) else task


def _plain(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=to_plain))
