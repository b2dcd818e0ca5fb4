"""Calendars by name, and definitions by time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from mainspring.core.errors import NotFound
from mainspring.core.model import Instant, Job
from mainspring.ports.store import Topic
from mainspring.ports.timetables import (
    CalendarMark,
    JobVersion,
    StoredCalendar,
    refuse_stale_calendar,
    refuse_used_calendar,
)
from mainspring.stores.sqlite.rows import read_jobs
from mainspring.stores.sqlite.session import Session

T = TypeVar("T")


class TimetableVerbs(ABC):
    """The part of the store that keeps them."""

    @abstractmethod
    async def write(self, work: Callable[[Session], T], quiet: Callable[[Session], T | None] | None = None) -> T: ...

    @abstractmethod
    async def read(self, work: Callable[[Session], T]) -> T: ...

    async def calendar_marks(self) -> dict[tuple[str, str], CalendarMark]:
        return await self.read(calendar_marks)

    async def calendars(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[StoredCalendar]:
        return await self.read(partial(calendars, names=names, namespace=namespace))

    async def put_calendar(
        self,
        name: str,
        document: str,
        *,
        expected: int | None = None,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> StoredCalendar:
        work = partial(put_calendar, name=name, document=document, expected=expected, namespace=namespace, now=now)
        return await self.write(work)

    async def delete_calendar(self, name: str, *, expected: int | None = None, namespace: str = "default") -> None:
        await self.write(partial(delete_calendar, name=name, expected=expected, namespace=namespace))

    async def jobs_using_calendar(
        self, name: str, *, namespace: str = "default", after: UUID | None = None, limit: int = 1000
    ) -> list[Job]:
        work = partial(jobs_using_calendar, name=name, namespace=namespace, after=after, limit=limit)
        return await self.read(work)

    async def job_versions(self, job_id: UUID) -> list[JobVersion]:
        return await self.read(partial(job_versions, job_id=job_id))


def calendar_marks(session: Session) -> dict[tuple[str, str], CalendarMark]:
    rows = session.run("calendar_marks")
    return {(namespace, name): CalendarMark(version, updated_at) for namespace, name, version, updated_at in rows}


def calendars(session: Session, names: Sequence[str] | None, namespace: str) -> list[StoredCalendar]:
    wanted = None if names is None else json.dumps(list(names))
    return [StoredCalendar(*row) for row in session.run("calendars", (namespace, wanted))]


def put_calendar(
    session: Session, name: str, document: str, expected: int | None, namespace: str, now: Instant | None
) -> StoredCalendar:
    held = _held(session, name, namespace, expected)
    if held is not None and held.document == document:
        return held
    row = StoredCalendar(namespace, name, 1 if held is None else held.version + 1, session.now(now), document)
    session.run("put_calendar", row)
    session.hint(Topic.JOBS)
    return row


def delete_calendar(session: Session, name: str, expected: int | None, namespace: str) -> None:
    if _held(session, name, namespace, expected) is None:
        raise NotFound(f"no calendar is named {name!r}")
    refuse_used_calendar(name, [job.id for job in jobs_using_calendar(session, name, namespace, None, 1)])
    session.run("delete_calendar", (namespace, name))


def _held(session: Session, name: str, namespace: str, expected: int | None) -> StoredCalendar | None:
    found = calendars(session, [name], namespace)
    refuse_stale_calendar(name, found[0].version if found else 0, expected)
    return found[0] if found else None


def jobs_using_calendar(session: Session, name: str, namespace: str, after: UUID | None, limit: int) -> list[Job]:
    begin = b"" if after is None else after.bytes
    return read_jobs(session, session.run("jobs_using_calendar", (name, begin, limit, namespace)))


def job_versions(session: Session, job_id: UUID) -> list[JobVersion]:
    return [
        JobVersion(version, since, session.lanes.lane(session, lane), priority, payload, document)
        for version, since, lane, priority, payload, document in session.run("job_versions", (job_id.bytes,))
    ]
