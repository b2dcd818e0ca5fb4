"""A calendar as users write it: dates, days of the week off, iCalendar text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import date

from mainspring.core.calendars import Calendar
from mainspring.core.cron import EPOCH_ORDINAL
from mainspring.core.errors import InvalidInput, Problem
from mainspring.core.icalendar import Event, read_icalendar

FIELDS = ("dates", "days_off", "icalendar")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MOST_DATES = 10_000

_FULL = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_calendar(name: str, document: Mapping[str, object], *, version: int = 1) -> Calendar:
    """The calendar that these fields describe; refused with a pointer to each thing that is wrong."""
    problems: list[Problem] = []
    for field in document:
        if field not in (*FIELDS, "name", "version"):
            near = difflib.get_close_matches(str(field)[:20], FIELDS, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"a calendar has {', '.join(FIELDS)}"
            problems.append(Problem(f"/{field}", f"is unknown; {cure}"))
    days_off = _days_off(document.get("days_off"), problems)
    dates = _dates(document.get("dates"), problems)
    events = _events(document.get("icalendar"), problems)
    if problems:
        raise InvalidInput(problems)
    single = {day for event in events if event.rule is None for day in range(event.start, event.start + event.length)}
    repeated = tuple(event for event in events if event.rule is not None)
    return Calendar(name, frozenset(dates | single), frozenset(days_off), version, repeated)


def _list(value: object, pointer: str, example: str, problems: list[Problem]) -> Iterable[object]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        problems.append(Problem(pointer, f"must be a list, such as {example}"))
        return ()
    if len(value) > MOST_DATES:
        problems.append(Problem(pointer, f"has {len(value)} entries; at most {MOST_DATES} are read"))
        return ()
    return value


def _dates(value: object, problems: list[Problem]) -> set[int]:
    found = set()
    for index, text in enumerate(_list(value, "/dates", '["2026-12-25"]', problems)):
        day = _day(text)
        if day is None:
            problems.append(Problem(f"/dates/{index}", f"{str(text)[:24]!r} is no date; write it as 2026-12-25"))
        else:
            found.add(day)
    return found


def _day(text: object) -> int | None:
    if not isinstance(text, str) or not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text).toordinal() - EPOCH_ORDINAL
    except ValueError:
        return None


def _days_off(value: object, problems: list[Problem]) -> set[int]:
    found = set()
    for index, text in enumerate(_list(value, "/days_off", '["sat", "sun"]', problems)):
        name = text.strip().lower() if isinstance(text, str) else ""
        if name in WEEKDAYS or name in _FULL:
            found.add((WEEKDAYS if name in WEEKDAYS else _FULL).index(name))
        else:
            shown = str(text)[:20]
            problems.append(Problem(f"/days_off/{index}", f"{shown!r} is no day; write {', '.join(WEEKDAYS)}"))
    if len(found) == 7:
        problems.append(Problem("/days_off", "leaves no working day in the week; leave one out"))
    return found


def _events(value: object, problems: list[Problem]) -> tuple[Event, ...]:
    if value is None:
        return ()
    if not isinstance(value, str):
        problems.append(Problem("/icalendar", "must be iCalendar text (BEGIN:VCALENDAR …)"))
        return ()
    try:
        return read_icalendar(value)
    except InvalidInput as error:
        problems += error.problems
        return ()
