"""The wish to stop: the first signal asks for a drain, the second one for an end at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopping:
    """Made inside the loop whose program it stops."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at_once = asyncio.Event()

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.ask)

    def ask(self) -> None:
        if self.asked.is_set():
            self.at_once.set()
        self.asked.set()

    async def or_done(self, work: Awaitable[object]) -> bool:
        """Waits for the work, or for the wish to stop, which cancels it; True if the work was done."""
        return await _first(work, self.asked)

    async def or_at_once(self, drain: Awaitable[object], end: Callable[[], Awaitable[object]]) -> bool:
        """Drains; when asked a second time it ends instead. True if the drain came to its end."""
        drained = await _first(drain, self.at_once)
        if not drained:
            await end()
        return drained


async def _first(work: Awaitable[object], event: asyncio.Event) -> bool:
    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return True
        return False
    finally:
        for each in (task, waiting):
            each.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)
