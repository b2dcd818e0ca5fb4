"""Keeps worker processes alive: one that dies is replaced at once, one that cannot start is tried less and less often."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from mainspring.app.child import DRAINED_BY_ORDER

HEALTHY_AFTER_SECONDS = 1.0
BACKOFF_FIRST_SECONDS = 0.2
BACKOFF_MAX_SECONDS = 10.0
DRAIN_SLACK_SECONDS = 15.0

_log = logging.getLogger("mainspring.supervisor")


class Child(Protocol):
    """A worker process, as far as it matters here."""

    @property
    def pid(self) -> int: ...

    @property
    def ready(self) -> asyncio.Event: ...

    @property
    def leaving(self) -> asyncio.Event: ...

    async def wait(self) -> int: ...

    async def drain(self) -> None: ...

    async def stop_now(self) -> None: ...

    def resume(self) -> None: ...

    def kill(self) -> None: ...


C = TypeVar("C", bound=Child)


class Supervisor(Generic[C]):
    """`start` makes a worker process; there are `count` of them until `drain` or `stop_now`."""

    def __init__(
        self,
        start: Callable[[], Awaitable[C]],
        count: int,
        *,
        drain_seconds: float,
        on_end: Callable[[C, int], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._on_end = on_end
        self._start = start
        self._count = count
        self._drain_seconds = drain_seconds
        self._children: set[C] = set()
        self._leaving: set[asyncio.Task[int]] = set()
        self._stopping = asyncio.Event()
        self._ended = asyncio.Event()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Until all processes have ended: because of a stop, or because each was drained by an order."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._count):
                    group.create_task(self._keep(), name=f"worker-process-{number}")
            await asyncio.gather(*self._leaving)
        finally:
            self._ended.set()

    async def drain(self) -> None:
        """Nothing is replaced any more; each process finishes what it has, as long as it may."""
        self._stopping.set()
        for child in list(self._children):
            await child.drain()
        try:
            async with asyncio.timeout(self._drain_seconds + DRAIN_SLACK_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            for child in list(self._children):
                _log.warning("worker process %d did not end after its drain; it is killed", child.pid)
                child.kill()
            await self._ended.wait()

    async def stop_now(self) -> None:
        self._stopping.set()
        await asyncio.gather(*(child.stop_now() for child in list(self._children)))
        await self._ended.wait()

    def resume(self) -> None:
        """The supervisor was stopped and goes on; so do its processes."""
        for child in self._children:
            child.resume()

    async def replace_all(self) -> None:
        """Drains every process; each is replaced when it has ended."""
        for child in list(self._children):
            await child.drain()

    async def _keep(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            started = self._monotonic()
            child = await self._start()
            self._children.add(child)
            attending = asyncio.create_task(self._attend(child))
            if not await self._until_it_leaves(child, attending):
                self._leaving.add(attending)
                failures = 0
                continue
            code = attending.result()
            if self._stopping.is_set() or code == DRAINED_BY_ORDER:
                return
            was_ready = child.ready.is_set()
            healthy = was_ready and self._monotonic() - started >= HEALTHY_AFTER_SECONDS
            failures = 0 if healthy else failures + 1
            # A run may have killed it: that is no reason to let the others wait.
            at_once = healthy or (was_ready and failures == 1)
            backoff = 0.0 if at_once else min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2 ** (failures - 1))
            _tell(child, code, backoff)
            await self._pause(backoff)

    async def _until_it_leaves(self, child: C, attending: asyncio.Task[int]) -> bool:
        """True if it has ended; False if it only drains in order to be replaced, which may take its time."""
        leaving = asyncio.create_task(child.leaving.wait())
        try:
            await asyncio.wait((attending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
        if not attending.done() and not self._stopping.is_set():
            _log.info("worker process %d only drains (lost threads, or stopped); another one starts now", child.pid)
            return False
        await attending
        return True

    async def _attend(self, child: C) -> int:
        watching = asyncio.create_task(self._note_ready(child))
        try:
            if self._stopping.is_set():
                await child.drain()
            code = await child.wait()
        finally:
            self._children.discard(child)
            watching.cancel()
        if self._on_end is not None:
            self._on_end(child, code)
        return code

    async def _note_ready(self, child: Child) -> None:
        await child.ready.wait()
        if self._children and all(each.ready.is_set() for each in self._children):
            self.ready.set()

    async def _pause(self, seconds: float) -> None:
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass


def _tell(child: Child, code: int, backoff: float) -> None:
    when = f"in {backoff:.1f} s" if backoff else "now"
    if code == 0:
        _log.info("worker process %d has stopped; another one starts %s", child.pid, when)
        return
    why = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    _log.warning("worker process %d ended %s; another one starts %s", child.pid, why, when)
