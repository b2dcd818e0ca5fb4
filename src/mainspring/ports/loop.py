"""The one shape of every loop: a step that does one thing and says when to run again.

A step that meets an error of the world (store unreachable) is tried again with decorrelated jitter; any other
error is a bug and ends the loop, so that whoever supervises it sees it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mainspring.core.errors import WorldError
from mainspring.ports.clock import Clock

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 2.0

_log = logging.getLogger("mainspring.loop")


class Loop:
    """Runs `step(now)`, now being monotonic seconds; the step answers how many seconds to wait for the next one."""

    def __init__(
        self,
        name: str,
        step: Callable[[float], Awaitable[float]],
        clock: Clock,
        *,
        on_trouble: Callable[[WorldError], None] | None = None,
    ) -> None:
        self.name = name
        self._step = step
        self._clock = clock
        self._on_trouble = on_trouble
        self._woken = asyncio.Event()
        self._stopping = False

    def wake(self) -> None:
        """Runs the next step at once."""
        self._woken.set()

    def stop(self) -> None:
        """Ends after the step under way."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        backoff = BACKOFF_FIRST_SECONDS
        while not self._stopping:
            self._woken.clear()
            try:
                delay = await self._step(self._clock.monotonic())
                backoff = BACKOFF_FIRST_SECONDS
            except WorldError as error:
                backoff = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS + self._clock.random() * backoff * 3)
                delay = backoff
                self._tell(error)
            await self._wait(delay)

    async def _wait(self, seconds: float) -> None:
        if self._stopping or self._woken.is_set():
            return
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass

    def _tell(self, error: WorldError) -> None:
        if self._on_trouble is None:
            _log.warning("%s: %s; trying again", self.name, error)
        else:
            self._on_trouble(error)
