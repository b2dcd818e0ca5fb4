"""Everything that is remembered, on PostgreSQL 14 to 18."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mainspring.ports.store import Capabilities, Hint
from mainspring.stores.postgres.base import QUERIES
from mainspring.stores.postgres.changing import Changing
from mainspring.stores.postgres.connection import connect, read_address, translate
from mainspring.stores.postgres.keeping import Keeping
from mainspring.stores.postgres.listing import Listing
from mainspring.stores.postgres.living import Living
from mainspring.stores.postgres.migrating import Migrating
from mainspring.stores.postgres.pool import close_quietly
from mainspring.stores.postgres.signs import SignsOfLife
from mainspring.stores.postgres.timetables import TimetableVerbs
from mainspring.stores.postgres.working import Working

if TYPE_CHECKING:
    import asyncpg


class PostgresStore(Changing, Working, Living, Listing, Keeping, TimetableVerbs, SignsOfLife, Migrating):
    """`postgresql://user@host/database?schema=mainspring&pooler=transaction&pool_size=8`, the last three optional."""

    def __init__(self, url: str) -> None:
        super().__init__(read_address(url))

    @property
    def capabilities(self) -> Capabilities:
        """Behind a transaction pooler no session belongs to anybody: no hints, no signs of life."""
        return Capabilities(
            name="postgresql",
            process_signs=False,
            session_signs=not self._address.pooler,
            hints=self._hints.trusted,
            durable=True,
        )

    async def open(self) -> None:
        """Connects, sees whether a pooler is between, checks the schema, and tries whether hints come back."""
        connection = await connect(replace(self._address, pooler=True))
        try:
            if await is_pooled(connection):
                self._use(replace(self._address, pooler=True))
            await self.migrations.check(connection)
        except Exception as error:
            raise translate(error, self._address) from error
        finally:
            await close_quietly(connection)
        await self._hints.open()
        await self._load_lanes()
        await self.now()

    async def close(self) -> None:
        """Lets running verbs finish, releases signs and connections."""
        await self._pool.close()
        await self._hints.close()
        await self._locks.close()
        await self._vital.close()

    def subscribe(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        return self._hints.subscribe(listener)


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """A pooler names another backend than the one that answers; then statements may not be prepared."""
    answering = await connection.fetchval(QUERIES["backend"])
    return bool(answering != connection.get_server_pid())
