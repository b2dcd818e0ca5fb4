"""Calendars by name, and definitions by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.errors import NotFound
from mainspring.core.model import Instant, Job
from mainspring.ports.timetables import (
    CalendarMark,
    JobVersion,
    StoredCalendar,
    refuse_stale_calendar,
    refuse_used_calendar,
)
from mainspring.stores.postgres.base import Base
from mainspring.stores.postgres.rows import job_of

if TYPE_CHECKING:
    import asyncpg


class TimetableVerbs(Base):
    """The part of the store that keeps them."""

    async def calendar_marks(self) -> dict[tuple[str, str], CalendarMark]:
        return {(row[0], row[1]): CalendarMark(row[2], row[3]) for row in await self._read("calendar_marks")}

    async def calendars(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[StoredCalendar]:
        wanted = None if names is None else list(names)
        return [StoredCalendar(*row) for row in await self._read("calendars", namespace, wanted)]

    async def put_calendar(
        self,
        name: str,
        document: str,
        *,
        expected: int | None = None,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> StoredCalendar:
        async def body(connection: asyncpg.Connection) -> StoredCalendar:
            held = await self._held_calendar(connection, name, namespace, expected)
            if held is not None and held.document == document:
                return held
            instant = await self._instant(connection, now)
            row = StoredCalendar(namespace, name, 1 if held is None else held.version + 1, instant, document)
            await self._rows(connection, "put_calendar", *row)
            return row

        stored = await self._transact(body)
        self._jobs_changed()
        return stored

    async def delete_calendar(self, name: str, *, expected: int | None = None, namespace: str = "default") -> None:
        async def body(connection: asyncpg.Connection) -> None:
            if await self._held_calendar(connection, name, namespace, expected) is None:
                raise NotFound(f"no calendar is named {name!r}")
            users = await self._rows(connection, "jobs_using_calendar", name, namespace, None, 1)
            refuse_used_calendar(name, [row["id"] for row in users])
            await self._rows(connection, "delete_calendar", namespace, name)

        await self._transact(body)

    async def _held_calendar(
        self, connection: asyncpg.Connection, name: str, namespace: str, expected: int | None
    ) -> StoredCalendar | None:
        await self._rows(connection, "lock_calendar", namespace, name)
        rows = await self._rows(connection, "calendars", namespace, [name])
        refuse_stale_calendar(name, rows[0]["version"] if rows else 0, expected)
        return StoredCalendar(*rows[0]) if rows else None

    async def jobs_using_calendar(
        self, name: str, *, namespace: str = "default", after: UUID | None = None, limit: int = 1000
    ) -> list[Job]:
        return [job_of(row) for row in await self._read("jobs_using_calendar", name, namespace, after, limit)]

    async def job_versions(self, job_id: UUID) -> list[JobVersion]:
        rows = await self._read("job_versions", job_id)
        lanes = await self._lanes_of(row["lane"] for row in rows)
        return [
            JobVersion(
                row["version"], row["since"], lanes[row["lane"]], row["priority"], row["payload"], row["document"]
            )
            for row in rows
        ]
