"""Calendars: which days are off, and what becomes of an occurrence that falls on one.

A calendar names local days, in the zone of the job that uses it. A pattern seen through a calendar
falls apart into three: the days on which it fires, the days on which it is only recorded as skipped,
and the days to which it was moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from mainspring.core.cron import EPOCH_ORDINAL, month_shape
from mainspring.core.icalendar import Event
from mainspring.core.instants import DAY_SECONDS, Pattern
from mainspring.core.rrule_days import rule_pattern
from mainspring.core.zone import UTC

LONGEST_CLOSURE = 366
ROLLS = ("skip", "next", "previous", "nearest")


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days off: single dates (numbered from 1970-01-01), days of the week (Monday is 0), repeated events."""

    name: str
    dates: frozenset[int] = frozenset()
    days_off: frozenset[int] = frozenset()
    version: int = 1
    events: tuple[Event, ...] = ()
    _years: dict[int, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    def is_off(self, day: int) -> bool:
        if (day + 3) % 7 in self.days_off or day in self.dates:
            return True
        return bool(self.events) and day in self._in_year(date.fromordinal(day + EPOCH_ORDINAL).year)

    def _in_year(self, year: int) -> frozenset[int]:
        found = self._years.get(year)
        if found is None:
            low, high = (date(each, 1, 1).toordinal() - EPOCH_ORDINAL for each in (year, year + 1))
            found = self._years[year] = frozenset(day for event in self.events for day in _days_of(event, low, high))
        return found


def _days_of(event: Event, low: int, high: int) -> Iterator[int]:
    """The days that a repeated event closes, from `low` up to `high`."""
    assert event.rule is not None
    pattern = rule_pattern(event.rule, UTC, event.start * DAY_SECONDS, exact=True)
    start = pattern.day_from(low - event.length + 1)
    while start is not None and start < high:
        if pattern.times_on(start) and start not in event.excluded:
            yield from range(start, start + event.length)
        start = pattern.day_from(start + 1)


@dataclass(frozen=True, slots=True)
class Roll:
    """How a job uses a calendar: the days off by roll, or only the n-th working day of each month."""

    calendar: str
    roll: str = "skip"
    working_day: int | None = None
    """Only this working day of each month; -1 is the last."""


class Through:
    """One pattern through a calendar, split into `fires`, `closed` and `moved`."""

    __slots__ = ("_months", "calendar", "closed", "fires", "moved", "pattern", "roll", "working_day")

    def __init__(self, pattern: Pattern, calendar: Calendar, roll: Roll) -> None:
        self.pattern = pattern
        self.calendar = calendar
        self.roll = roll.roll if roll.working_day is None else "skip"
        self.working_day = roll.working_day
        self._months: dict[tuple[int, int], int] = {}
        self.fires = _View(self, "fires")
        self.closed = _View(self, "closed")
        self.moved = _View(self, "moved")

    def times_on(self, day: int, kind: str) -> int:
        own = self.pattern.times_on(day)
        if self.working_day is not None:
            return own if own and kind == "fires" and self._is_working_day(day, self.working_day) else 0
        if self.calendar.is_off(day):
            return own if kind == "closed" and own and not self._wins(day) else 0
        if own or kind == "closed" or self.roll == "skip":
            return own if kind == "fires" else 0
        winner = self._winner(day)
        return 0 if winner is None else self.pattern.times_on(winner)

    def target(self, day: int) -> int | None:
        """The working day to which a day off is moved; None where there is none."""
        if self.roll == "skip":
            return None
        for distance in range(1, LONGEST_CLOSURE + 1):
            if self.roll != "previous" and not self.calendar.is_off(day + distance):
                if self.roll == "nearest" and not self.calendar.is_off(day - distance):
                    return day - distance
                return day + distance
            if self.roll != "next" and not self.calendar.is_off(day - distance):
                return day - distance
        return None

    def _is_working_day(self, day: int, nth: int) -> bool:
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        month = moment.year, moment.month
        if month not in self._months:
            first = day - moment.day + 1
            working = [each for each in range(first, first + month_shape(*month)[1]) if not self.calendar.is_off(each)]
            self._months[month] = working[nth - 1 if nth > 0 else nth] if len(working) >= abs(nth) else first - 1
        return self._months[month] == day

    def _wins(self, day: int) -> bool:
        """Whether this day off is the one that runs on the day it is moved to."""
        target = self.target(day)
        return target is not None and not self.pattern.times_on(target) and self._winner(target) == day

    def _winner(self, target: int) -> int | None:
        """The earliest of the days off that are moved to this working day."""
        first = target
        while target - first < LONGEST_CLOSURE and self.calendar.is_off(first - 1):
            first -= 1
        for day in range(first, target):
            if self.pattern.times_on(day) and self.target(day) == target:
                return day
        day = target + 1
        while day - target <= LONGEST_CLOSURE and self.calendar.is_off(day):
            if self.pattern.times_on(day) and self.target(day) == target:
                return day
            day += 1
        return None


class _View:
    """One of the three parts, as a pattern of its own."""

    __slots__ = ("_kind", "_through")

    def __init__(self, through: Through, kind: str) -> None:
        self._through = through
        self._kind = kind

    @property
    def unit(self) -> int:
        return self._through.pattern.unit

    @property
    def elapsed(self) -> bool:
        return self._through.pattern.elapsed

    def times_on(self, day: int) -> int:
        return self._through.times_on(day, self._kind)

    def day_from(self, day: int) -> int | None:
        """Days that may match: what is moved lies within a closure of the pattern's own days."""
        through = self._through
        if through.roll == "skip":
            return through.pattern.day_from(day)
        reach = day - 1
        while day - reach <= LONGEST_CLOSURE and through.calendar.is_off(reach):
            reach -= 1
        found = through.pattern.day_from(reach + 1)
        if found is None or found <= day:
            return None if found is None else day
        if through.roll == "next":
            return found
        while found > day and through.calendar.is_off(found):
            found -= 1
        return found

    def day_until(self, day: int) -> int | None:
        through = self._through
        if through.roll == "skip":
            return through.pattern.day_until(day)
        reach = day + 1
        while reach - day <= LONGEST_CLOSURE and through.calendar.is_off(reach):
            reach += 1
        found = through.pattern.day_until(reach - 1)
        if found is None or found >= day:
            return None if found is None else day
        if through.roll == "previous":
            return found
        while found < day and through.calendar.is_off(found):
            found += 1
        return found
