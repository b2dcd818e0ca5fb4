"""What becomes of what fell due while nobody was there to fire it.

Late is not misfired: an occurrence that is overdue by no more than half its period runs under every
policy. Of the misfired, the policy picks which still run; the rest becomes records, one for each
reason and quiet stretch, so that an outage of a year costs no more than one of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mainspring.core.calendars import Calendar
from mainspring.core.instants import Kind
from mainspring.core.model import SECOND, Duration, Instant
from mainspring.core.occurrences import (
    NO_CALENDARS,
    Schedule,
    count_between,
    next_after,
    previous_before,
)
from mainspring.core.sources import Occurrence

POLICIES = ("skip", "once", "all")
MOST_CAUGHT_UP = 10_000

_LEAST_PATIENCE: Duration = 2 * SECOND
_MOST_PATIENCE: Duration = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Misfire:
    """What a job wants done with its misfired occurrences."""

    policy: str = "once"
    window: Duration | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done with one occurrence, or with a stretch of skipped ones."""

    nominal: Instant
    scheduled_at: Instant
    action: str
    """run or skip."""
    reason: str | None = None
    """Why it is skipped: misfire, dst_gap or calendar."""
    count: int = 1
    catch_up: bool = False
    missed_before: int = 0
    through: Instant = 0
    """The nominal instant of the last occurrence that this verdict speaks for."""


def patience(occurrence: Occurrence, following: Occurrence | None) -> Duration:
    """How long the occurrence may be overdue and still be only late."""
    if following is None:
        return _MOST_PATIENCE
    return min(max((following.nominal - occurrence.nominal) // 2, _LEAST_PATIENCE), _MOST_PATIENCE)


def is_misfired(occurrence: Occurrence, following: Occurrence | None, now: Instant) -> bool:
    """Overdue by more than half the period, that is the distance to the following instant."""
    return now - occurrence.scheduled_at > patience(occurrence, following)


def catch_up(
    schedule: Schedule,
    *,
    fired_through: Instant,
    now: Instant,
    anchor: Instant,
    misfire: Misfire,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    some_late: bool = True,
) -> tuple[Verdict, ...]:
    """All that is due and not decided yet, oldest first; `through` of the last is the new `fired_through`.

    Without `some_late` nothing is only late: the policy decides on all of it, as after a pause.
    """
    past = _Past(schedule, fired_through, now, anchor, calendars, some_late=some_late)
    first = past.next(fired_through)
    if first is None or first.scheduled_at > now:
        return ()
    if not schedule.recurring:
        return (_run(first),)
    following = past.next(first.nominal)
    if following is None or following.scheduled_at > now:
        misfired = not some_late or is_misfired(first, following, now)
        return _decide_one(first, misfired=misfired, misfire=misfire, now=now)
    return past.decide(misfire)


def _decide_one(first: Occurrence, *, misfired: bool, misfire: Misfire, now: Instant) -> tuple[Verdict, ...]:
    if not first.fires:
        return (_skip(first, _reason(first)),)
    if not misfired:
        return (_run(first),)
    if _wanted(first, misfire, now):
        return (replace(_run(first), catch_up=True),)
    return (_skip(first, "misfire"),)


def _wanted(occurrence: Occurrence, misfire: Misfire, now: Instant) -> bool:
    """Whether this misfired occurrence may still run, if it is among those picked."""
    if misfire.policy != "all":
        return misfire.policy == "once"
    return misfire.limit > 0 and (misfire.window is None or now - occurrence.scheduled_at <= misfire.window)


class _Past:
    """The stretch from what was decided last up to now."""

    def __init__(
        self,
        schedule: Schedule,
        fired_through: Instant,
        now: Instant,
        anchor: Instant,
        calendars: Mapping[str, Calendar],
        *,
        some_late: bool,
    ) -> None:
        self.schedule = schedule
        self.fired_through = fired_through
        self.now = now
        self.anchor = anchor
        self.calendars = calendars
        self.some_late = some_late

    def next(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        return next_after(self.schedule, instant, anchor=self.anchor, calendars=self.calendars, kind=kind)

    def previous(self, instant: Instant, kind: Kind = Kind.ANY) -> Occurrence | None:
        found = previous_before(self.schedule, instant, anchor=self.anchor, calendars=self.calendars, kind=kind)
        return found if found is not None and found.nominal > self.fired_through else None

    def decide(self, misfire: Misfire) -> tuple[Verdict, ...]:
        late, cut = self._late()
        picked = self._picked(cut, misfire, beside_late=any(occurrence.fires for occurrence in late))
        verdicts = [
            *self._misfired(cut, picked),
            *(_run(each) if each.fires else _skip(each, _reason(each)) for each in late),
        ]
        return tuple(_with_what_was_missed(verdicts))

    def _late(self) -> tuple[list[Occurrence], Instant]:
        """What is due and only late, oldest first; and the instant up to which the rest is misfired."""
        late: list[Occurrence] = []
        found = self.previous(self.now + 1)
        following = self.next(self.now)
        if found is not None and found.scheduled_at > self.now:
            found, following = self.previous(found.nominal), found
        while self.some_late and found is not None and not is_misfired(found, following, self.now):
            late.append(found)
            found, following = self.previous(found.nominal), found
        return late[::-1], self.fired_through if found is None else found.nominal

    def _picked(self, cut: Instant, misfire: Misfire, *, beside_late: bool) -> list[Occurrence]:
        """The misfired ones that still run, oldest first."""
        room = {"skip": 0, "once": 0 if beside_late else 1, "all": min(misfire.limit, MOST_CAUGHT_UP)}[misfire.policy]
        picked: list[Occurrence] = []
        found = self.previous(cut + 1, Kind.FIRES) if room > 0 else None
        while found is not None and len(picked) < room and _wanted(found, misfire, self.now):
            picked.append(found)
            found = self.previous(found.nominal, Kind.FIRES) if len(picked) < room else None
        return picked[::-1]

    def _misfired(self, cut: Instant, picked: list[Occurrence]) -> Iterator[Verdict]:
        low = self.fired_through
        for occurrence in picked:
            yield from self._quiet(low, occurrence.nominal)
            yield replace(_run(occurrence), catch_up=True)
            low = occurrence.nominal
        yield from self._quiet(low, cut + 1)

    def _quiet(self, low: Instant, high: Instant) -> list[Verdict]:
        """One record for each reason for which nothing ran between the two (neither included), by first instant."""
        if high - low < 2:
            return []
        counts = count_between(self.schedule, low + 1, high, anchor=self.anchor, calendars=self.calendars)
        kinds = (
            (Kind.FIRES, counts.fires, "misfire"),
            (Kind.GAP, counts.gap, "dst_gap"),
            (Kind.CLOSED, counts.closed, "calendar"),
        )
        found = [self._stretch(kind, count, reason, low, high) for kind, count, reason in kinds if count]
        return sorted((verdict for verdict in found if verdict is not None), key=lambda verdict: verdict.nominal)

    def _stretch(self, kind: Kind, count: int, reason: str, low: Instant, high: Instant) -> Verdict | None:
        first, last = self.next(low, kind), self.previous(high, kind)
        if first is None or last is None:
            return None
        return replace(_skip(first, reason), count=count, through=last.nominal)


def _with_what_was_missed(verdicts: list[Verdict]) -> Iterator[Verdict]:
    """Tells each run how many misfired occurrences were dropped since the run before it."""
    missed = 0
    for verdict in verdicts:
        if verdict.action == "run":
            yield replace(verdict, missed_before=missed) if missed else verdict
            missed = 0
        else:
            missed += verdict.count if verdict.reason == "misfire" else 0
            yield verdict


def _run(occurrence: Occurrence) -> Verdict:
    return Verdict(occurrence.nominal, occurrence.scheduled_at, "run", through=occurrence.nominal)


def _skip(occurrence: Occurrence, reason: str) -> Verdict:
    return Verdict(occurrence.nominal, occurrence.scheduled_at, "skip", reason, through=occurrence.nominal)


def _reason(occurrence: Occurrence) -> str:
    return "calendar" if "calendar" in occurrence.marks else "dst_gap"
