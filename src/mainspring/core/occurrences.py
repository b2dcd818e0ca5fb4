"""When a job is due: one schedule, read once, asked often.

`next_after`, `previous_before` and `between` answer in occurrences; `count_between` says how many
there are without walking through them. An occurrence is named by its nominal instant; jitter and
spread only move when it is due, and never past the occurrence that follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from mainspring.core.calendars import Calendar, Roll, Through
from mainspring.core.cron import Cron
from mainspring.core.errors import InvalidInput
from mainspring.core.every_nth import every_nth
from mainspring.core.instants import Counts, Dst, Kind, Pattern, Timeline
from mainspring.core.model import SECOND, Duration, Instant
from mainspring.core.rrule import Rule
from mainspring.core.rrule_days import rule_pattern
from mainspring.core.sources import Every, Occurrence, Once, Source, Walls
from mainspring.core.zone import UTC, Zone

ONE_TIME = ("now", "at", "delay")
NO_CALENDARS: Mapping[str, Calendar] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Schedule:
    """What of a job says "when"."""

    kind: str
    """now, at, delay, cron, every or rrule."""
    zone: Zone = UTC
    at: Instant | None = None
    delay: Duration | None = None
    every: Duration | None = None
    crons: tuple[Cron, ...] = ()
    rule: Rule | None = None
    dst: Dst = Dst()
    timeline: Timeline | None = None
    """Of cron; that of a rule depends on when the job begins."""
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter: Duration = 0
    spread: Duration = 0
    calendar: Roll | None = None
    every_nth: int = 1
    job_id: UUID | None = None

    @property
    def recurring(self) -> bool:
        return self.kind not in ONE_TIME

    @property
    def timezone(self) -> str:
        return self.zone.name


def next_after(
    schedule: Schedule,
    instant: Instant,
    *,
    anchor: Instant,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    kind: Kind = Kind.ANY,
) -> Occurrence | None:
    """The first occurrence after the instant; None when there is no further one.

    `anchor` is the job's creation: intervals count from it, a delay and "now" as well.
    """
    source = _source(schedule, anchor, calendars)
    found = _after(schedule, source, instant, kind)
    return None if found is None else _finished(schedule, source, found)


def previous_before(
    schedule: Schedule,
    instant: Instant,
    *,
    anchor: Instant,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    kind: Kind = Kind.ANY,
) -> Occurrence | None:
    """The last occurrence before the instant."""
    source = _source(schedule, anchor, calendars)
    found = _before(schedule, source, instant, kind)
    return None if found is None else _finished(schedule, source, found)


def between(
    schedule: Schedule,
    start: Instant,
    end: Instant,
    *,
    anchor: Instant,
    limit: int,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Iterator[Occurrence]:
    """The occurrences from `start` up to `end` (not included), at most `limit` of them."""
    source = _source(schedule, anchor, calendars)
    found = _after(schedule, source, start - 1, Kind.ANY)
    while found is not None and found.nominal < end and limit > 0:
        yield _finished(schedule, source, found)
        limit -= 1
        found = _after(schedule, source, found.nominal, Kind.ANY)


def count_between(
    schedule: Schedule,
    start: Instant,
    end: Instant,
    *,
    anchor: Instant,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Counts:
    """How many occurrences lie from `start` up to `end` (not included); the cost grows with days, not with them."""
    if schedule.recurring and schedule.start_at is not None:
        start = max(start, schedule.start_at)
    if schedule.recurring and schedule.end_at is not None:
        end = min(end, schedule.end_at)
    return _source(schedule, anchor, calendars).count(start, end) if start < end else Counts()


def _source(schedule: Schedule, anchor: Instant, calendars: Mapping[str, Calendar]) -> Source:
    if not schedule.recurring:
        return Once(schedule.at if schedule.at is not None else anchor + (schedule.delay or 0))
    calendar = None if schedule.calendar is None else _calendar(schedule.calendar, calendars)
    if schedule.every is not None:
        first = anchor + schedule.every if schedule.start_at is None else schedule.start_at
        return Every(first, schedule.every, schedule.zone, calendar)
    timeline = _timeline(schedule, anchor)
    if schedule.calendar is None or calendar is None:
        return Walls(timeline)
    return Walls(_through(timeline, calendar, schedule.calendar))


def _timeline(schedule: Schedule, anchor: Instant) -> Timeline:
    if schedule.timeline is not None and schedule.every_nth == 1:
        return schedule.timeline
    start = schedule.start_at
    begin = anchor // SECOND if start is None else -(-start // SECOND)
    if schedule.rule is not None:
        pattern: Pattern = rule_pattern(schedule.rule, schedule.zone, begin, exact=start is not None)
    else:
        begin += start is None and anchor % SECOND > 0
        pattern = every_nth(schedule.crons[0], schedule.zone, schedule.every_nth, begin)
    return Timeline([pattern], schedule.zone, schedule.dst)


def _calendar(roll: Roll, calendars: Mapping[str, Calendar]) -> Calendar:
    try:
        return calendars[roll.calendar]
    except KeyError:
        raise InvalidInput.at(
            "/calendar/name",
            f"no calendar is named {roll.calendar!r}; create it with PUT /v1/calendars/{roll.calendar}",
        ) from None


def _through(timeline: Timeline, calendar: Calendar, roll: Roll) -> Timeline:
    parts = [Through(pattern, calendar, roll) for pattern in timeline.patterns]
    return Timeline(
        [part.fires for part in parts],
        timeline.zone,
        timeline.dst,
        closed=[part.closed for part in parts],
        moved=[part.moved for part in parts],
    )


def _after(schedule: Schedule, source: Source, instant: Instant, kind: Kind) -> Occurrence | None:
    if schedule.recurring and schedule.start_at is not None:
        instant = max(instant, schedule.start_at - 1)
    found = source.after(instant, kind)
    if found is None or (schedule.recurring and schedule.end_at is not None and found.nominal >= schedule.end_at):
        return None
    return found


def _before(schedule: Schedule, source: Source, instant: Instant, kind: Kind) -> Occurrence | None:
    if schedule.recurring and schedule.end_at is not None:
        instant = min(instant, schedule.end_at)
    found = source.before(instant, kind)
    if found is None or (schedule.recurring and schedule.start_at is not None and found.nominal < schedule.start_at):
        return None
    return found


def _finished(schedule: Schedule, source: Source, found: Occurrence) -> Occurrence:
    """The occurrence with jitter and spread, which every scheduler computes alike."""
    if not (schedule.jitter or schedule.spread) or not found.fires:
        return found
    following = source.after(found.nominal)
    room = following.nominal - found.nominal if following else None
    return found._replace(scheduled_at=found.nominal + _shift(schedule, found.nominal, room))


def _shift(schedule: Schedule, nominal: Instant, room: Duration | None) -> Duration:
    """How much later than its nominal instant the occurrence is due; stays before the following one."""
    seed = (schedule.job_id or UUID(int=0)).bytes
    shift = _share(seed, schedule.spread, room)
    rest = None if room is None else room - shift
    return shift + _share(seed + nominal.to_bytes(9, "big", signed=True), schedule.jitter, rest)


def _share(seed: bytes, window: Duration, room: Duration | None) -> Duration:
    width = window if room is None else min(window, room)
    if width <= 0:
        return 0
    return int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big") % width
