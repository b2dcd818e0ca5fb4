"""Signs of life: a session of its own holds a lock for as long as the process lives."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.errors import MainspringError
from mainspring.ports.store import Sign, Signs
from mainspring.stores.postgres.base import Base
from mainspring.stores.postgres.connection import Address, connect, translate
from mainspring.stores.postgres.pool import Backoff, close_quietly

if TYPE_CHECKING:
    import asyncpg


class SessionLocks:
    """One connection that holds the locks of this process's identities, and takes them again after a reconnection."""

    def __init__(self, address: Address, sql: str) -> None:
        self._address = address
        self._sql = sql
        self._identities: list[UUID] = []
        self._connection: asyncpg.Connection | None = None
        self._lost = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def hold(self, identity: UUID) -> None:
        if identity in self._identities:
            return
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
        await self._lock(self._connection, identity)
        self._identities.append(identity)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="mainspring signs of life")

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
            self._keeper = None
        if self._connection is not None:
            await close_quietly(self._connection)
            self._connection = None
        self._identities.clear()

    async def _connect(self) -> asyncpg.Connection:
        connection = await connect(self._address)
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        for identity in self._identities:
            await self._lock(connection, identity)
        return connection

    async def _lock(self, connection: asyncpg.Connection, identity: UUID) -> None:
        try:
            await connection.execute(self._sql, lock_number(identity))
        except Exception as error:
            connection.terminate()
            raise translate(error, self._address) from error

    async def _keep(self) -> None:
        backoff = Backoff()
        while True:
            await self._lost.wait()
            await backoff.pause()
            try:
                self._connection = await self._connect()
            except MainspringError:
                backoff.failed()
            else:
                backoff.succeeded()


class SignsOfLife(Base):
    """What a watcher sees of those who hold a lock."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._locks = SessionLocks(address, self._sql["hold_sign"])

    async def hold_sign(self, identity: UUID) -> None:
        """Held until the store is closed or the process dies. Behind a transaction pooler sessions are nobody's."""
        if not self._address.pooler:
            await self._locks.hold(identity)

    async def signs(self, identities: Sequence[UUID]) -> Signs:
        """The epoch names the server's start and the watcher's own session: locks fall for the living, too, when
        either ends."""
        if self._address.pooler:
            return Signs("", {})
        numbers = {lock_number(identity): identity for identity in identities}
        rows = await self._vital.statement(self._sql["signs"], list(numbers))
        held = {row["number"] for row in rows}
        seen = {identity: Sign.HELD if number in held else Sign.FREE for number, identity in numbers.items()}
        return Signs(str(rows[0]["epoch"]), seen)


def lock_number(identity: UUID) -> int:
    """Advisory locks have numbers of 64 bits: the random half of the id, signed."""
    return (identity.int & 0xFFFF_FFFF_FFFF_FFFF) - (1 << 63)
