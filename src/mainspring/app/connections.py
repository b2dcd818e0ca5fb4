"""A connection to the store for each event loop that submits, and one background loop for code that has none.

A store belongs to one loop and one process. So a connection is looked up by the running loop; it is opened when it
is first needed; a worker lends its own to the handlers it runs; and a forked child starts with none.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import TypeVar

from mainspring.app.background import BackgroundLoop
from mainspring.app.connection import Connection, connected
from mainspring.app.handle import Handle
from mainspring.config import Settings
from mainspring.tasks.submitter import JobHandle, Order

T = TypeVar("T")
R = TypeVar("R")

# Stores of the process that forked: the child must neither use nor close them, and never collects them either.
_left_behind: list[object] = []
_all: weakref.WeakSet[Connections] = weakref.WeakSet()


class Connections:
    """The `Submitter` of an application's tasks."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, asyncio.Task[Connection] | Connection] = {}
        self._lent: tuple[asyncio.AbstractEventLoop, int] | None = None
        self._background = BackgroundLoop()
        _all.add(self)

    async def submit(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        connection = await self.here()
        ids = await connection.submit(orders)
        return [Handle(self, identity, order.task) for identity, order in zip(ids, orders, strict=True)]

    def submit_sync(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        return self.call(self.submit(orders))

    def call(self, work: Coroutine[object, object, T]) -> T:
        """Runs the coroutine in another thread's loop, and waits for it."""
        lent = self._lent_loop()
        if lent is None:
            return self._background.call(work)
        return asyncio.run_coroutine_threadsafe(work, lent).result()

    def lend(self, connection: Connection) -> None:
        """The handlers of a worker submit through the worker's own connection."""
        loop = asyncio.get_running_loop()
        self._by_loop[loop] = connection
        self._lent = (loop, threading.get_ident())

    async def here(self) -> Connection:
        """The connection of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        if isinstance(found, Connection):
            return found
        if found is None:
            self._forget_closed_loops()
            found = self._by_loop[loop] = asyncio.create_task(connected(self._settings()))
        try:
            # Several may wait for one opening; if one of them is cancelled, the others still want it.
            connection = await asyncio.shield(found)
        except BaseException:
            if found.done():
                self._by_loop.pop(loop, None)
            raise
        self._by_loop[loop] = connection
        return connection

    def close(self) -> Awaitable[None]:
        if self._background.running:
            self._background.call(self._close_here())
            self._background.stop()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._forget_closed_loops()
            return _Closed()
        return loop.create_task(self._close_here())

    def forget(self) -> None:
        """In a child after a fork: begins anew."""
        _left_behind.append((self._by_loop, self._background))
        self._lock = threading.Lock()
        self._by_loop = {}
        self._lent = None
        self._background = BackgroundLoop()

    async def _close_here(self) -> None:
        found = self._by_loop.pop(asyncio.get_running_loop(), None)
        if isinstance(found, asyncio.Task):
            found = await found
        if found is not None and not found.lent:
            await found.close()

    def _lent_loop(self) -> asyncio.AbstractEventLoop | None:
        """The worker's loop, unless it is this very thread that would have to wait for it."""
        if self._lent is None or self._lent[1] == threading.get_ident() or self._lent[0].is_closed():
            return None
        return self._lent[0]

    def _forget_closed_loops(self) -> None:
        for loop in [loop for loop in self._by_loop if loop.is_closed()]:
            del self._by_loop[loop]


class _Closed:
    """Nothing is left to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


def _after_fork() -> None:
    for connections in list(_all):
        connections.forget()


os.register_at_fork(after_in_child=_after_fork)
