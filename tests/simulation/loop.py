"""An event loop whose time is virtual and whose order is drawn from a seed.

Every callback belongs to the process in whose context it was scheduled. Within a process order is kept; which process
goes next is drawn. A paused process is not run until it is resumed; a crashed one is never run again: nothing of it,
not even its clean-up, happens after the crash.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from random import Random
from typing import Any


class Process:
    """One simulated operating-system process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0

    def __repr__(self) -> str:
        return self.name


WORLD = Process("world")
current_process: ContextVar[Process] = ContextVar("current_process", default=WORLD)


class Deadlock(RuntimeError):
    """Nothing is left to run and no timer is set."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Single-threaded; the only selector it has is the clock."""

    _ready: deque[Any]
    _scheduled: list[Any]

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._virtual_now = 0.0
        self._queues: dict[Process, deque[Any]] = {}
        self.steps = 0

    def time(self) -> float:
        return self._virtual_now

    def crash(self, process: Process) -> None:
        process.alive = False
        self._queues.pop(process, None)

    def spawn(self, process: Process, start: Callable[[], Any]) -> None:
        """Runs `start()` as the first step of the process."""
        context = Context()
        context.run(current_process.set, process)
        self.call_soon(start, context=context)

    def _run_once(self) -> None:
        self._sort_ready()
        runnable = [process for process in self._queues if process.paused_until <= self._virtual_now]
        if not runnable:
            self._advance()
            return
        process = runnable[0] if len(runnable) == 1 else runnable[int(self._random.random() * len(runnable))]
        queue = self._queues[process]
        handle = queue.popleft()
        if not queue:
            del self._queues[process]
        if process.alive and not handle._cancelled:
            self.steps += 1
            handle._run()

    def _sort_ready(self) -> None:
        while self._ready:
            self._enqueue(self._ready.popleft())
        scheduled = self._scheduled
        while scheduled and scheduled[0]._when <= self._virtual_now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            self._enqueue(handle)

    def _enqueue(self, handle: Any) -> None:
        if handle._cancelled:
            return
        process = handle._context.get(current_process, WORLD)
        if process.alive:
            self._queues.setdefault(process, deque()).append(handle)

    def _advance(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        times = [scheduled[0]._when] if scheduled else []
        times += [process.paused_until for process in self._queues]
        if not times:
            raise Deadlock("nothing is left to run and no timer is set")
        self._virtual_now = max(self._virtual_now, min(times))

    def _process_events(self, event_list: object) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There is no other thread."""
