"""The calendars of a store as schedules read them, each parsed once for each of its versions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping

from mainspring.core.calendar_read import read_calendar
from mainspring.core.calendars import Calendar
from mainspring.core.occurrences import NO_CALENDARS
from mainspring.ports.timetables import CalendarMark, Timetables

Name = tuple[str, str]


class CalendarBook:
    """What was read at the last `refresh`."""

    def __init__(self, store: Timetables) -> None:
        self._store = store
        self._marks: dict[Name, CalendarMark] = {}
        self._read: dict[str, Mapping[str, Calendar]] = {}

    async def refresh(self) -> list[Name]:
        """Reads what is new or changed; answers the (namespace, name) of those that were known before and changed."""
        marks = await self._store.calendar_marks()
        if marks == self._marks:
            return []
        fresh: dict[str, list[str]] = defaultdict(list)
        for (namespace, name), mark in marks.items():
            if self._marks.get((namespace, name)) != mark:
                fresh[namespace].append(name)
        changed = [name for name in self._marks if name in marks and marks[name] != self._marks[name]]
        for namespace in {namespace for namespace, _ in (*marks, *self._marks)}:
            known = self._read.get(namespace, NO_CALENDARS)
            kept = {name: each for name, each in known.items() if (namespace, name) in marks}
            rows = await self._store.calendars(fresh[namespace], namespace) if fresh[namespace] else []
            kept |= {row.name: read_calendar(row.name, json.loads(row.document), version=row.version) for row in rows}
            self._read[namespace] = kept
        self._marks = marks
        return changed

    def of(self, namespace: str) -> Mapping[str, Calendar]:
        """By name."""
        return self._read.get(namespace, NO_CALENDARS)


def names_calendar(document: str | None) -> bool:
    """Whether a stored document may name a calendar; cheap, and never wrongly no."""
    return document is not None and '"calendar":' in document
