"""What is needed of a store beside the jobs themselves: calendars, earlier definitions, and what fell when.

Part of `mainspring.ports.store.Store`; the docstrings are the contract here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from mainspring.core.errors import Conflict, StaleVersion
from mainspring.core.model import Instant, Job, Lane


class StoredCalendar(NamedTuple):
    """A calendar as it was given: `document` is its JSON text."""

    namespace: str
    name: str
    version: int
    updated_at: Instant
    document: str


class CalendarMark(NamedTuple):
    """Which state of a calendar is in force; `updated_at` tells a new one of an old name from the old one."""

    version: int
    updated_at: Instant


class JobVersion(NamedTuple):
    """A definition that a recurring job has or had, from `since` on."""

    version: int
    since: Instant
    lane: Lane
    priority: int
    payload: bytes
    document: str | None


class Timetables(Protocol):
    """Calendars by name, and definitions by time."""

    async def calendar_marks(self) -> dict[tuple[str, str], CalendarMark]:
        """By (namespace, name): what is in force, without its text."""
        ...

    async def calendars(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[StoredCalendar]:
        """By name; all of the namespace, or those of the names that there are."""
        ...

    async def put_calendar(
        self,
        name: str,
        document: str,
        *,
        expected: int | None = None,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> StoredCalendar:
        """Creates the calendar with version 1, or replaces it and raises its version by one. The same document again
        changes nothing. `expected`: only while it has this version (0: while there is none), else StaleVersion."""
        ...

    async def delete_calendar(self, name: str, *, expected: int | None = None, namespace: str = "default") -> None:
        """NotFound where there is none; StaleVersion as above; Conflict while a job that has not ended uses it."""
        ...

    async def jobs_using_calendar(
        self, name: str, *, namespace: str = "default", after: UUID | None = None, limit: int = 1000
    ) -> list[Job]:
        """Jobs that have not ended and whose schedule names the calendar, by id, those after `after`."""
        ...

    async def job_versions(self, job_id: UUID) -> list[JobVersion]:
        """The definitions of a recurring job, oldest first; the last is the one in force. Empty for others."""
        ...


def refuse_stale_calendar(name: str, version: int, expected: int | None) -> None:
    """`version` is 0 where there is no such calendar."""
    if expected is not None and expected != version:
        held = f"has version {version}" if version else "does not exist"
        raise StaleVersion(f"calendar {name!r} {held}; read it again")


def refuse_used_calendar(name: str, users: Sequence[UUID]) -> None:
    if users:
        raise Conflict(
            f"calendar {name!r} is used by job {users[0]}; take it out of the schedules that use it, or cancel them"
        )
