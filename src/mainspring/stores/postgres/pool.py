"""The connections that verbs share, and transactions on them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from mainspring.core.errors import StoreUnavailable
from mainspring.stores.postgres.connection import SECONDS_MAX, Address, connect, is_broken, may_repeat, translate

if TYPE_CHECKING:
    import asyncpg

Answer = TypeVar("Answer")

REPEATS_MAX = 5
BACKOFF_FIRST = 0.05
BACKOFF_MAX = 1.0
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


class Backoff:
    """After a failed connection the next is tried a little later, by everybody together."""

    def __init__(self) -> None:
        self._wait = 0.0
        self._not_before = 0.0

    async def pause(self) -> None:
        remaining = self._not_before - time.monotonic()
        if remaining > 0:
            await asyncio.sleep(remaining)

    def failed(self) -> None:
        self._wait = min(BACKOFF_MAX, max(BACKOFF_FIRST, self._wait * 2))
        self._not_before = time.monotonic() + self._wait * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        self._wait = self._not_before = 0.0


class Pool:
    """At most `size` connections, opened when they are needed. A verb takes one for its one transaction."""

    def __init__(self, address: Address, size: int) -> None:
        self.address = address
        self._size = size
        self._permits = asyncio.Semaphore(size)
        self._idle: list[asyncpg.Connection] = []
        self._opening = asyncio.Lock()
        self._backoff = Backoff()
        self._closed = False

    async def close(self) -> None:
        """Waits for those that are in use."""
        if self._closed:
            return
        self._closed = True
        for _ in range(self._size):
            await self._permits.acquire()
        idle, self._idle = self._idle, []
        for connection in idle:
            await close_quietly(connection)

    async def statement(self, sql: str, *arguments: object, writes: bool = False) -> list[asyncpg.Record]:
        """One statement that is its own transaction. A read is tried again when its connection proves stale."""
        for last in (writes, True):
            try:
                async with self.connection() as connection:
                    return list(await connection.fetch(sql, *arguments))
            except Exception as error:
                if last or not (is_broken(error) and not isinstance(error, TimeoutError)):
                    raise translate(error, self.address, committing=writes) from error
        raise AssertionError("unreachable")

    async def transact(self, body: Callable[[asyncpg.Connection], Awaitable[Answer]]) -> Answer:
        """Runs the body in one transaction; deadlocks and serialization failures are repeated a few times."""
        for attempt in range(REPEATS_MAX):
            try:
                return await self._transact_once(body)
            except Exception as error:
                if not may_repeat(error) or attempt == REPEATS_MAX - 1:
                    raise translate(error, self.address) from error
            await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """One for as long as the block lasts; not kept where the block was cancelled or the connection failed."""
        connection = await self._take()
        sound = False
        try:
            yield connection
            sound = True
        except Exception as error:
            sound = not is_broken(error)
            raise
        finally:
            self._give_back(connection, sound=sound)

    async def _transact_once(self, body: Callable[[asyncpg.Connection], Awaitable[Answer]]) -> Answer:
        async with self.connection() as connection:
            await connection.execute(BEGIN)
            try:
                answer = await body(connection)
            except Exception as error:
                if not is_broken(error):
                    await connection.execute("ROLLBACK")
                raise
            try:
                await connection.execute("COMMIT")
            except Exception as error:
                raise translate(error, self.address, committing=True) from error
            return answer

    async def _take(self) -> asyncpg.Connection:
        if self._closed:
            raise StoreUnavailable("the store has been closed")
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await self._permits.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"all {self._size} connections to {self.address.shown} are busy; raise pool_size in the store's URL"
            ) from None
        try:
            return await self._find()
        except BaseException:
            self._permits.release()
            raise

    async def _find(self) -> asyncpg.Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        async with self._opening:
            await self._backoff.pause()
            try:
                connection = await connect(self.address)
            except BaseException:
                self._backoff.failed()
                raise
            self._backoff.succeeded()
            return connection

    def _give_back(self, connection: asyncpg.Connection, *, sound: bool) -> None:
        if sound and not connection.is_closed() and not connection.is_in_transaction():
            self._idle.append(connection)
        else:
            connection.terminate()
        self._permits.release()


async def close_quietly(connection: asyncpg.Connection) -> None:
    """Says goodbye, or hangs up where nobody listens."""
    try:
        await connection.close(timeout=1)
    except Exception:  # noqa: BLE001 - it is gone either way
        connection.terminate()


def flat(rows: Sequence[Sequence[object]]) -> list[object]:
    """The only column of some rows."""
    return [row[0] for row in rows]
