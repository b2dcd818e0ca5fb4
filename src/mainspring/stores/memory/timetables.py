"""Calendars by name, and definitions by time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
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
from mainspring.stores.memory.tables import Tables


class TimetableVerbs(ABC):
    """The part of the store that keeps them."""

    _tables: Tables

    @abstractmethod
    def _instant(self, now: Instant | None) -> Instant: ...

    @abstractmethod
    def _publish(self) -> None: ...

    async def calendar_marks(self) -> dict[tuple[str, str], CalendarMark]:
        rows = self._tables.calendars
        return {name: CalendarMark(row.version, row.updated_at) for name, row in rows.items()}

    async def calendars(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[StoredCalendar]:
        rows = [row for row in self._tables.calendars.values() if row.namespace == namespace]
        return sorted(row for row in rows if names is None or row.name in names)

    async def put_calendar(
        self,
        name: str,
        document: str,
        *,
        expected: int | None = None,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> StoredCalendar:
        held = self._tables.calendars.get((namespace, name))
        refuse_stale_calendar(name, 0 if held is None else held.version, expected)
        if held is not None and held.document == document:
            return held
        row = StoredCalendar(namespace, name, 1 if held is None else held.version + 1, self._instant(now), document)
        self._tables.calendars[namespace, name] = row
        self._tables.hint(Topic.JOBS)
        self._publish()
        return row

    async def delete_calendar(self, name: str, *, expected: int | None = None, namespace: str = "default") -> None:
        held = self._tables.calendars.get((namespace, name))
        if held is None:
            raise NotFound(f"no calendar is named {name!r}")
        refuse_stale_calendar(name, held.version, expected)
        refuse_used_calendar(name, [job.id for job in _users(self._tables, name, namespace)])
        del self._tables.calendars[namespace, name]

    async def jobs_using_calendar(
        self, name: str, *, namespace: str = "default", after: UUID | None = None, limit: int = 1000
    ) -> list[Job]:
        found = _users(self._tables, name, namespace)
        return [job for job in found if after is None or job.id > after][:limit]

    async def job_versions(self, job_id: UUID) -> list[JobVersion]:
        return list(self._tables.versions.get(job_id, ()))


def note_version(tables: Tables, job: Job) -> None:
    """The definition as it is from now on."""
    kept = JobVersion(job.version, job.updated_at, job.lane, job.priority, job.payload, job.document)
    tables.versions.setdefault(job.id, []).append(kept)


def _users(tables: Tables, name: str, namespace: str) -> list[Job]:
    return sorted(
        (
            job
            for job in tables.jobs.values()
            if job.lane.namespace == namespace and not job.state.ended and _calendar_of(job) == name
        ),
        key=lambda job: job.id,
    )


def _calendar_of(job: Job) -> str | None:
    if job.document is None or '"calendar":' not in job.document:
        return None
    used = json.loads(job.document).get("calendar")
    return str(used["name"]) if isinstance(used, dict) else None
