"""Where instants come from: once, at an interval, or by the clock on the wall.

Each answers three questions, in microseconds: the first instant after, the last before, and how many
there are between two, without walking through them.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from mainspring.core.calendars import Calendar
from mainspring.core.cron import LAST_DAY
from mainspring.core.instants import DAY_SECONDS, Counts, Instance, Kind, Timeline
from mainspring.core.model import DAY, SECOND, Duration, Instant
from mainspring.core.zone import Zone

_GIVE_UP_DAYS = 1_000
_END: Instant = (LAST_DAY + 1) * DAY


class Occurrence(NamedTuple):
    """One instant at which a job is due."""

    nominal: Instant
    scheduled_at: Instant
    fires: bool = True
    marks: tuple[str, ...] = ()


class Source(Protocol):
    def after(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None: ...
    def before(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None: ...
    def count(self, start: Instant, end: Instant) -> Counts: ...


class Once:
    """One instant."""

    def __init__(self, due: Instant) -> None:
        self.due = due

    def after(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        return Occurrence(self.due, self.due) if self.due > instant and _wanted(kind) else None

    def before(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        return Occurrence(self.due, self.due) if self.due < instant and _wanted(kind) else None

    def count(self, start: Instant, end: Instant) -> Counts:
        return Counts(int(start <= self.due < end))


class Every:
    """`first`, and from there on every `step`; days off of the calendar only leave a record."""

    def __init__(self, first: Instant, step: Duration, zone: Zone, calendar: Calendar | None) -> None:
        self.first = first
        self.step = step
        self.zone = zone
        self.calendar = calendar

    def after(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        for _ in range(_GIVE_UP_DAYS):
            found = self.first + max(0, (instant - self.first) // self.step + 1) * self.step
            if found > _END:
                return None
            closed = self._closed(found)
            if kind is Kind.ANY or kind is (Kind.CLOSED if closed else Kind.FIRES):
                return _closed_or_open(found, closed)
            if self.calendar is None:
                return None
            instant = self._day(found)[1] - 1
        return None

    def before(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        for _ in range(_GIVE_UP_DAYS):
            steps = (min(instant - 1, _END) - self.first) // self.step
            if steps < 0:
                return None
            found = self.first + steps * self.step
            closed = self._closed(found)
            if kind is Kind.ANY or kind is (Kind.CLOSED if closed else Kind.FIRES):
                return _closed_or_open(found, closed)
            if self.calendar is None:
                return None
            instant = self._day(found)[0]
        return None

    def count(self, start: Instant, end: Instant) -> Counts:
        if self.calendar is None:
            return Counts(self._steps(end) - self._steps(start)) if end > start else Counts()
        fires = closed = 0
        start = max(start, self.first)
        while start < end:
            stop = min(end, self._day(start)[1])
            number = self._steps(stop) - self._steps(start)
            if self._closed(start):
                closed += number
            else:
                fires += number
            start = stop
        return Counts(fires, 0, closed)

    def _steps(self, instant: Instant) -> int:
        """How many instants lie before this one."""
        return max(0, -((self.first - instant) // self.step))

    def _closed(self, instant: Instant) -> bool:
        if self.calendar is None:
            return False
        second = instant // SECOND
        return self.calendar.is_off((second + self.zone.offset(second)) // DAY_SECONDS)

    def _day(self, instant: Instant) -> tuple[Instant, Instant]:
        """A stretch around the instant that lies within one local day, cut at clock changes."""
        second = instant // SECOND
        offset = self.zone.offset(second)
        low = (second + offset) // DAY_SECONDS * DAY_SECONDS - offset
        high = low + DAY_SECONDS
        for change in self.zone.changes(low, high):
            if low < change.at <= second:
                low = change.at
            elif second < change.at < high:
                high = change.at
        return low * SECOND, high * SECOND


class Walls:
    """Wall times in a zone."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline

    def after(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        return _occurrence(self.timeline.after(instant // SECOND, kind))

    def before(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        return _occurrence(self.timeline.before(-(-instant // SECOND), kind))

    def count(self, start: Instant, end: Instant) -> Counts:
        return self.timeline.count(-(-start // SECOND), -(-end // SECOND))


def _wanted(kind: Kind) -> bool:
    return kind in (Kind.ANY, Kind.FIRES)


def _closed_or_open(instant: Instant, closed: bool) -> Occurrence:  # noqa: FBT001 - two kinds of one thing
    return Occurrence(instant, instant, not closed, ("calendar",) if closed else ())


def _occurrence(instance: Instance | None) -> Occurrence | None:
    if instance is None:
        return None
    nominal = instance.second * SECOND
    return Occurrence(nominal, nominal, instance.fires, instance.marks)
