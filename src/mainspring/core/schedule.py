"""The fields of a job that say when, read into a `Schedule`; everything wrong is said at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from mainspring.core.calendars import ROLLS, Calendar, Roll
from mainspring.core.cron import Cron, read_cron
from mainspring.core.cron_parse import DIALECTS
from mainspring.core.errors import InvalidInput, Problem
from mainspring.core.every_nth import MOST
from mainspring.core.instants import Dst, Kind, Timeline
from mainspring.core.model import Duration, Instant
from mainspring.core.occurrences import Schedule, between, count_between, next_after, previous_before
from mainspring.core.rrule import read_rule
from mainspring.core.sources import Occurrence
from mainspring.core.times import read_duration, read_instant
from mainspring.core.zone import UTC, read_zone

__all__ = [
    "Occurrence",
    "Schedule",
    "between",
    "count_between",
    "next_after",
    "previous_before",
    "read_schedule",
    "refuse_if_over",
]

WHEN = ("at", "delay", "cron", "every", "rrule")
GAPS = ("after", "skip", "before")
FOLDS = ("first", "second", "both")
MOST_EXPRESSIONS = 32
SHORTEST_INTERVAL: Duration = 10_000

_Read = TypeVar("_Read")


def read_schedule(document: Mapping[str, object], *, job_id: UUID | None = None) -> Schedule:
    """The schedule that these fields describe; refused with a pointer to each field that is wrong."""
    return _Reader(document, job_id).read()


class _Reader:
    def __init__(self, document: Mapping[str, object], job_id: UUID | None) -> None:
        self.document = document
        self.job_id = job_id
        self.problems: list[Problem] = []

    def read(self) -> Schedule:
        named = [name for name in WHEN if self.document.get(name) is not None]
        if len(named) > 1:
            self._wrong(f"/{named[1]}", f"at most one of {', '.join(WHEN)} says when; found {' and '.join(named)}")
        kind = named[0] if named else "now"
        schedule = self._schedule(kind)
        if self.problems:
            raise InvalidInput(self.problems)
        self._refuse_empty(schedule)
        return schedule

    def _schedule(self, kind: str) -> Schedule:
        zone = self._field("timezone", read_zone, UTC)
        crons = self._crons() if self.document.get("cron") is not None else ()
        dst = self._dst()
        return Schedule(
            kind=kind,
            zone=zone,
            at=self._field("at", read_instant, None),
            delay=self._field("delay", read_duration, None),
            every=self._field("every", _read_interval, None),
            crons=crons,
            rule=self._field("rrule", read_rule, None),
            dst=dst,
            timeline=Timeline(crons, zone, dst) if crons else None,
            start_at=self._field("start_at", read_instant, None),
            end_at=self._field("end_at", read_instant, None),
            jitter=self._field("jitter", read_duration, 0),
            spread=self._field("spread", read_duration, 0),
            calendar=self._calendar(),
            every_nth=self._every_nth(crons),
            job_id=self.job_id,
        )

    def _field(self, name: str, read: Callable[[object, str], _Read], default: _Read) -> _Read:
        value = self.document.get(name)
        if value is None:
            return default
        try:
            return read(value, f"/{name}")
        except InvalidInput as error:
            self.problems += error.problems
            return default

    def _crons(self) -> tuple[Cron, ...]:
        dialect = self._choice("dialect", self.document.get("dialect"), DIALECTS)
        value = self.document.get("cron")
        if not isinstance(value, list | tuple):
            return self._cron(value, dialect, "/cron")
        if not value:
            self._wrong("/cron", "is an empty list, so it never fires; write at least one expression")
        if len(value) > MOST_EXPRESSIONS:
            self._wrong("/cron", f"has {len(value)} expressions; at most {MOST_EXPRESSIONS} make one schedule")
            return ()
        found: tuple[Cron, ...] = ()
        for index, expression in enumerate(value):
            found += self._cron(expression, dialect, f"/cron/{index}")
        return found

    def _cron(self, expression: object, dialect: str | None, pointer: str) -> tuple[Cron, ...]:
        try:
            return (read_cron(expression, dialect=dialect, job_id=self.job_id, pointer=pointer),)
        except InvalidInput as error:
            self.problems += error.problems
            return ()

    def _every_nth(self, crons: tuple[Cron, ...]) -> int:
        value = self.document.get("every_nth")
        if value is None:
            return 1
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
            self._wrong("/every_nth", f"must be a whole number from 1 to {MOST}")
        elif self.document.get("cron") is None:
            self._wrong("/every_nth", "goes with cron; an interval is made longer, an rrule has INTERVAL")
        elif len(crons) > 1:
            self._wrong("/every_nth", "counts the instants of one expression; give cron as one text")
        else:
            return value
        return 1

    def _calendar(self) -> Roll | None:
        value = self.document.get("calendar")
        if value is None:
            return None
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, Mapping):
            self._wrong("/calendar", 'must be an object, such as {"name": "be-holidays", "roll": "skip"}')
            return None
        for field in value:
            if field not in ("name", "roll", "working_day"):
                self._wrong(f"/calendar/{field}", "is unknown; calendar has name, roll and working_day")
        name = value.get("name")
        if not isinstance(name, str) or not name:
            self._wrong("/calendar/name", "must be the name of a calendar")
            return None
        roll = self._choice("calendar/roll", value.get("roll"), ROLLS) or "skip"
        if roll != "skip" and self.document.get("every") is not None:
            self._wrong("/calendar/roll", "an interval keeps its beat and is not moved; use roll skip, or cron")
        return Roll(name, roll, self._working_day(value.get("working_day")))

    def _working_day(self, value: object) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= abs(value) <= 23:
            self._wrong("/calendar/working_day", "must be 1 to 23, or -1 (the last) to -23")
            return None
        if self.document.get("every") is not None:
            self._wrong("/calendar/working_day", "goes with cron or rrule, which name the time of day")
        return value

    def _dst(self) -> Dst:
        value = self.document.get("dst")
        if value is None:
            return Dst()
        if not isinstance(value, Mapping):
            self._wrong("/dst", 'must be an object, such as {"gap": "after", "fold": "first"}')
            return Dst()
        for name in value:
            if name not in ("gap", "fold"):
                self._wrong(f"/dst/{name}", "is unknown; dst has gap and fold")
        gap = self._choice("dst/gap", value.get("gap"), GAPS)
        fold = self._choice("dst/fold", value.get("fold"), FOLDS)
        return Dst(gap or "after", fold or "first")

    def _choice(self, name: str, value: object, known: tuple[str, ...]) -> str | None:
        if value is None or (isinstance(value, str) and value in known):
            return value
        self._wrong(f"/{name}", f"is unknown; write one of {', '.join(known)}")
        return None

    def _refuse_empty(self, schedule: Schedule) -> None:
        """Bounds that leave nothing, as far as they can be seen without knowing the time."""
        if not schedule.recurring:
            return
        start, end = schedule.start_at, schedule.end_at
        if start is not None and end is not None and end <= start:
            raise InvalidInput.at("/end_at", "is not after start_at, so the schedule never fires")
        begin = 0 if start is None else start
        if (start is None and schedule.rule is None) or next_after(
            _open(schedule), begin - 1, anchor=begin
        ) is not None:
            return
        pointer = f"/{schedule.kind}" if end is None else "/end_at"
        raise InvalidInput.at(pointer, "leaves no occurrence: the schedule never fires")

    def _wrong(self, pointer: str, detail: str) -> None:
        self.problems.append(Problem(pointer, detail))


def _open(schedule: Schedule) -> Schedule:
    """The schedule without its calendar, which may change."""
    return schedule if schedule.calendar is None else replace(schedule, calendar=None)


def refuse_if_over(schedule: Schedule, now: Instant, *, calendars: Mapping[str, Calendar] | None = None) -> None:
    """Refuses a recurring schedule of which no occurrence is left after now, or none that its calendar lets run."""
    if not schedule.recurring:
        return
    if next_after(_open(schedule), now, anchor=now) is None:
        pointer = f"/{schedule.kind}" if schedule.end_at is None else "/end_at"
        raise InvalidInput.at(pointer, "never fires: no occurrence is left after now")
    if schedule.calendar is None or calendars is None:
        return
    if next_after(schedule, now, anchor=now, calendars=calendars, kind=Kind.FIRES) is None:
        raise InvalidInput.at("/calendar", "never fires: the calendar closes every day on which it would")


def _read_interval(value: object, pointer: str) -> Duration:
    interval = read_duration(value, pointer)
    if interval < SHORTEST_INTERVAL:
        raise InvalidInput.at(pointer, "is too short for an interval; the shortest is 10ms")
    return interval
