"""Runs one `step(now)` again and again: waits as long as it asks, is woken early, backs off from a broken world."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable

from mainspring.core.errors import WorldError
from mainspring.core.model import SECOND
from mainspring.observe import events
from mainspring.ports.clock import Clock

Step = Callable[[float], Awaitable[float | None]]

BACKOFF_FIRST = 0.05
BACKOFF_LONGEST = 1.0


class Loop:
    """`step` gets monotonic seconds and answers in how many it wants to run again; None: when somebody wakes it.

    It is set before `run`, and may itself be made of what wakes this loop.
    """

    def __init__(self, name: str, *, clock: Clock, bus: events.Bus) -> None:
        self.name = name
        self.step: Step = _nothing
        self._clock = clock
        self._bus = bus
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._lost_at: float | None = None
        self._backoff = 0.0

    def wake(self) -> None:
        """The next step begins at once; a wake-up during a step is not lost. A loop that backs off is not woken."""
        self._woken.set()

    def stop(self) -> None:
        """No further step begins; the one under way is not disturbed."""
        self._stopping.set()
        self._woken.set()

    async def run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            await self._pause(await self.turn())

    async def turn(self) -> float | None:
        """One step; an error of the world or a bug becomes a growing wait."""
        try:
            delay = await self.step(self._clock.monotonic())
        except WorldError as error:
            self._mark_lost(error)
        except Exception:  # noqa: BLE001 - the step boundary: one broken step must not end the worker
            self._bus.publish(events.StepFailed(self.name, traceback.format_exc()))
        else:
            self._mark_back()
            return delay
        self._backoff = self._next_backoff()
        return self._backoff

    async def _pause(self, delay: float | None) -> None:
        waited_for = self._stopping if self._backoff else self._woken
        if delay is not None and delay <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(delay):
                await waited_for.wait()
        except TimeoutError:
            pass

    def _next_backoff(self) -> float:
        """Decorrelated jitter: from the first wait up to thrice the last one."""
        highest = max(BACKOFF_FIRST, self._backoff * 3)
        return min(BACKOFF_LONGEST, BACKOFF_FIRST + (highest - BACKOFF_FIRST) * self._clock.random())

    def _mark_lost(self, error: WorldError) -> None:
        if self._lost_at is None:
            self._lost_at = self._clock.monotonic()
            self._bus.publish(events.StoreLost(self.name, str(error)))

    def _mark_back(self) -> None:
        self._backoff = 0.0
        if self._lost_at is not None:
            passed = self._clock.monotonic() - self._lost_at
            self._lost_at = None
            self._bus.publish(events.StoreBack(self.name, round(passed * SECOND)))


async def _nothing(now: float) -> float | None:
    del now
    return None
