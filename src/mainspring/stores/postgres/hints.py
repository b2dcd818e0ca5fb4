"""Wake-ups between processes: NOTIFY on a connection of its own, LISTEN on another, nothing that matters if lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from mainspring.core.errors import MainspringError
from mainspring.ports.store import Hint, Topic
from mainspring.stores.postgres.connection import Address, connect
from mainspring.stores.postgres.pool import Backoff, close_quietly

if TYPE_CHECKING:
    import asyncpg

COALESCE_SECONDS = 0.005
SELF_CHECK_SECONDS = 1.0
PAYLOAD_MAX = 7000
PENDING_MAX = 10_000
_TOPICS = frozenset(topic.value for topic in Topic)
NOTIFY = "SELECT pg_catalog.pg_notify($1, $2)"


class Hints:
    """Hands every hint to this process's listeners at once and to other processes soon."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._channel = f"{address.schema}_hints"
        self._sender = os.urandom(6).hex()
        self._listeners: list[Callable[[Hint], None]] = []
        self._pending: dict[Hint, None] = {}
        self._flusher: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._speaker: asyncpg.Connection | None = None
        self._backoff = Backoff()
        self._came_back = asyncio.Event()
        self._lost = asyncio.Event()
        self.trusted = False

    async def open(self) -> None:
        """Listens, and sees whether an own NOTIFY comes back; behind a transaction pooler it would not."""
        if self.address.pooler or self._keeper is not None:
            return
        listener = await self._listen()
        self._keeper = asyncio.create_task(self._keep_listening(listener), name="mainspring hints: listen")
        await self._notify("?")
        with suppress(TimeoutError):
            async with asyncio.timeout(SELF_CHECK_SECONDS):
                await self._came_back.wait()
                self.trusted = True

    async def close(self) -> None:
        """Sends what is pending, then hangs up."""
        if self._flusher is not None:
            await self._flusher
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        if self._speaker is not None:
            await close_quietly(self._speaker)
            self._speaker = None

    def subscribe(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def publish(self, hints: Iterable[Hint]) -> None:
        """The first goes out at once; what follows within a few milliseconds goes together, each kind once."""
        for hint in hints:
            self._deliver(hint)
            if self.trusted and len(self._pending) < PENDING_MAX:
                self._pending[hint] = None
        if self._pending and self._flusher is None:
            self._flusher = asyncio.create_task(self._flush(), name="mainspring hints: notify")

    def _deliver(self, hint: Hint) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(hint)
            except Exception as error:  # noqa: BLE001 - what was committed stays committed, whoever cannot hear of it
                context = {"message": f"a listener failed on {hint}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)

    async def _flush(self) -> None:
        try:
            while self._pending:
                hints, self._pending = self._pending, {}
                for payload in payloads(hints):
                    await self._notify(payload)
                await asyncio.sleep(COALESCE_SECONDS)
        except MainspringError:
            self._pending.clear()
        finally:
            self._flusher = None

    async def _notify(self, payload: str) -> None:
        """Autocommit, and only after the transaction that it tells of: its lock would serialise every commit."""
        if self._speaker is None or self._speaker.is_closed():
            await self._backoff.pause()
            try:
                self._speaker = await connect(self.address)
            except MainspringError:
                self._backoff.failed()
                raise
            self._backoff.succeeded()
        try:
            await self._speaker.execute(NOTIFY, self._channel, f"{self._sender}\n{payload}")
        except Exception:  # noqa: BLE001 - a hint that is lost costs waiting time; the next one opens a new connection
            self._speaker.terminate()

    async def _listen(self) -> asyncpg.Connection:
        connection = await connect(self.address)
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        await connection.add_listener(self._channel, self._heard)
        return connection

    async def _keep_listening(self, listener: asyncpg.Connection) -> None:
        """Listens again whenever the connection is lost; whoever listens is told to look, since hints were missed."""
        backoff = Backoff()
        try:
            while True:
                await self._lost.wait()
                await backoff.pause()
                try:
                    listener = await self._listen()
                except Exception:  # noqa: BLE001 - whatever it was, it is tried again a little later
                    backoff.failed()
                    continue
                backoff.succeeded()
                self._deliver(Hint(Topic.JOBS))
        finally:
            await close_quietly(listener)

    def _heard(self, _connection: object, _pid: int, _channel: str, text: object) -> None:
        sender, _, payload = str(text).partition("\n")
        if sender == self._sender:
            self._came_back.set()
            return
        for line in payload.split("\n"):
            topic, _, key = line.partition(":")
            if topic in _TOPICS:
                self._deliver(Hint(Topic(topic), key))


def payloads(hints: Iterable[Hint]) -> Iterable[str]:
    """As few messages as their bound allows."""
    lines: list[str] = []
    size = 0
    for hint in hints:
        line = f"{hint.topic}:{hint.key}"
        size += len(line.encode()) + 1
        if size > PAYLOAD_MAX:
            yield "\n".join(lines)
            lines, size = [], len(line.encode()) + 1
        lines.append(line)
    yield "\n".join(lines)
