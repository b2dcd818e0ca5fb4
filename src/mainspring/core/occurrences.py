"""When a job is due: one schedule, read once, asked often.

`read_schedule` turns the fields of a job into a `Schedule`; `next_after`, `previous_before` and
`between` answer in occurrences. An occurrence is named by its nominal instant; jitter and spread
only move when it is due, and never past the occurrence that follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from mainspring.core.cron import Cron
from mainspring.core.instants import Instance, Timeline
from mainspring.core.model import SECOND, Duration, Instant
from mainspring.core.zone import UTC, Zone

ONE_TIME = ("now", "at", "delay")


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
    timeline: Timeline | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    jitter: Duration = 0
    spread: Duration = 0
    job_id: UUID | None = None

    @property
    def recurring(self) -> bool:
        return self.kind not in ONE_TIME

    @property
    def timezone(self) -> str:
        return self.zone.name


class Occurrence(NamedTuple):
    """One instant at which a job is due."""

    nominal: Instant
    scheduled_at: Instant
    fires: bool = True
    marks: tuple[str, ...] = ()


def next_after(schedule: Schedule, instant: Instant, *, anchor: Instant) -> Occurrence | None:
    """The first occurrence after the instant; None when there is no further one.

    `anchor` is the job's creation: intervals count from it, a delay and "now" as well.
    """
    found = _base_after(schedule, instant, anchor)
    return None if found is None else _finished(schedule, found, anchor)


def previous_before(schedule: Schedule, instant: Instant, *, anchor: Instant) -> Occurrence | None:
    """The last occurrence before the instant."""
    found = _base_before(schedule, instant, anchor)
    return None if found is None else _finished(schedule, found, anchor)


def between(schedule: Schedule, start: Instant, end: Instant, *, anchor: Instant, limit: int) -> Iterator[Occurrence]:
    """The occurrences from `start` up to `end` (not included), at most `limit` of them."""
    found = next_after(schedule, start - 1, anchor=anchor)
    while found is not None and found.nominal < end and limit > 0:
        yield found
        limit -= 1
        found = next_after(schedule, found.nominal, anchor=anchor)


def _finished(schedule: Schedule, found: Occurrence, anchor: Instant) -> Occurrence:
    if not (schedule.jitter or schedule.spread) or not found.fires:
        return found
    following = _base_after(schedule, found.nominal, anchor)
    room = following.nominal - found.nominal if following else None
    return found._replace(scheduled_at=found.nominal + _shift(schedule, found.nominal, room))


def _shift(schedule: Schedule, nominal: Instant, room: Duration | None) -> Duration:
    """How much later than its nominal instant the occurrence is due; stays before the following one."""
    seed = (schedule.job_id or UUID(int=0)).bytes
    jitter_seed = seed + nominal.to_bytes(9, "big", signed=True)
    shift = _share(seed, schedule.spread, room)
    rest = None if room is None else room - shift
    return shift + _share(jitter_seed, schedule.jitter, rest)


def _share(seed: bytes, window: Duration, room: Duration | None) -> Duration:
    width = window if room is None else min(window, room)
    if width <= 0:
        return 0
    return int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big") % width


def _base_after(schedule: Schedule, instant: Instant, anchor: Instant) -> Occurrence | None:
    if not schedule.recurring:
        due = _one_time(schedule, anchor)
        return _plain(due) if due > instant else None
    if schedule.start_at is not None and instant < schedule.start_at:
        instant = schedule.start_at - 1
    found = _unbounded_after(schedule, instant, anchor)
    if found is None or (schedule.end_at is not None and found.nominal >= schedule.end_at):
        return None
    return found


def _base_before(schedule: Schedule, instant: Instant, anchor: Instant) -> Occurrence | None:
    if not schedule.recurring:
        due = _one_time(schedule, anchor)
        return _plain(due) if due < instant else None
    if schedule.end_at is not None:
        instant = min(instant, schedule.end_at)
    found = _unbounded_before(schedule, instant, anchor)
    if found is None or (schedule.start_at is not None and found.nominal < schedule.start_at):
        return None
    return found


def _one_time(schedule: Schedule, anchor: Instant) -> Instant:
    if schedule.at is not None:
        return schedule.at
    return anchor + (schedule.delay or 0)


def _unbounded_after(schedule: Schedule, instant: Instant, anchor: Instant) -> Occurrence | None:
    if schedule.every is not None:
        first = _first_of_every(schedule, anchor, schedule.every)
        steps = max(0, (instant - first) // schedule.every + 1)
        return _plain(first + steps * schedule.every)
    if schedule.timeline is None:
        return None
    return _occurrence(schedule.timeline.after(instant // SECOND))


def _unbounded_before(schedule: Schedule, instant: Instant, anchor: Instant) -> Occurrence | None:
    if schedule.every is not None:
        first = _first_of_every(schedule, anchor, schedule.every)
        steps = (instant - 1 - first) // schedule.every
        return None if steps < 0 else _plain(first + steps * schedule.every)
    if schedule.timeline is None:
        return None
    return _occurrence(schedule.timeline.before(-(-instant // SECOND)))


def _first_of_every(schedule: Schedule, anchor: Instant, every: Duration) -> Instant:
    """At `start_at` where there is one, else one interval after creation."""
    return anchor + every if schedule.start_at is None else schedule.start_at


def _plain(instant: Instant) -> Occurrence:
    return Occurrence(instant, instant)


def _occurrence(instance: Instance | None) -> Occurrence | None:
    if instance is None:
        return None
    marks = ("dst_gap",) * instance.gap + ("dst_fold",) * instance.fold
    nominal = instance.second * SECOND
    return Occurrence(nominal, nominal, instance.fires, marks)
