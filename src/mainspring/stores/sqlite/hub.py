"""Who wants to hear hints in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from mainspring.ports.store import Hint

Callback = Callable[[], None]


class Hub:
    """Listeners with the event loops in which they are called."""

    def __init__(self) -> None:
        self._listeners: dict[int, tuple[asyncio.AbstractEventLoop, Callable[[Hint], None]]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def clear(self) -> None:
        self._listeners.clear()

    def add(self, loop: asyncio.AbstractEventLoop, listener: Callable[[Hint], None]) -> Callback:
        self._next += 1
        number = self._next
        self._listeners[number] = (loop, listener)

        def stop() -> None:
            self._listeners.pop(number, None)

        return stop

    def address(self, hints: Iterable[Hint], outbox: Outbox) -> None:
        """Puts one call per listener that is still there into the outbox."""
        batch = tuple(hints)
        if not batch:
            return
        for number, (loop, _) in list(self._listeners.items()):
            outbox.add(loop, partial(self._tell, number, batch))

    def _tell(self, number: int, hints: tuple[Hint, ...]) -> None:
        for hint in hints:
            found = self._listeners.get(number)
            if found is not None:
                found[1](hint)


class Outbox:
    """What is to be called in event loops, so that one batch wakes each loop once."""

    def __init__(self) -> None:
        self._calls: dict[asyncio.AbstractEventLoop, list[Callback]] = {}

    def add(self, loop: asyncio.AbstractEventLoop, call: Callback) -> None:
        self._calls.setdefault(loop, []).append(call)

    def send(self) -> None:
        for loop, calls in self._calls.items():
            try:
                loop.call_soon_threadsafe(_call_all, calls)
            except RuntimeError:
                continue  # the loop is closed: nobody waits there any more


def _call_all(calls: list[Callback]) -> None:
    for call in calls:
        call()
