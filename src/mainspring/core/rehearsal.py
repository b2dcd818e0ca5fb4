"""A schedule played through in advance, outages included: what would run, what would be skipped and why.

Stretches without an outage are counted, not walked, so that a year of any schedule takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mainspring.core.calendars import Calendar
from mainspring.core.errors import InvalidInput
from mainspring.core.misfire import Misfire, Verdict, catch_up
from mainspring.core.model import Instant
from mainspring.core.occurrences import NO_CALENDARS, Schedule, count_between


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Of `expected` occurrences `ran` run in time, `caught_up` afterwards, the rest is skipped for a reason."""

    ran: int
    caught_up: int
    skipped: Mapping[str, int]
    outages: tuple[tuple[Verdict, ...], ...]
    """What is decided at the end of each outage."""

    @property
    def expected(self) -> int:
        return self.ran + self.caught_up + sum(self.skipped.values())


def rehearse(
    schedule: Schedule,
    start: Instant,
    end: Instant,
    *,
    anchor: Instant,
    outages: Sequence[tuple[Instant, Instant]] = (),
    misfire: Misfire | None = None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Rehearsal:
    """From `start` up to `end` (not included); `outages` are (from, to), in order, without overlap."""
    ran = caught_up = 0
    skipped: dict[str, int] = {}
    decided: list[tuple[Verdict, ...]] = []
    for low, high, out in _stretches(start, end, outages):
        if not out:
            counts = count_between(schedule, low, high, anchor=anchor, calendars=calendars)
            ran += counts.fires
            _add(skipped, "dst_gap", counts.gap)
            _add(skipped, "calendar", counts.closed)
            continue
        verdicts = catch_up(
            schedule,
            fired_through=low - 1,
            now=high - 1,
            anchor=anchor,
            misfire=misfire or Misfire(),
            calendars=calendars,
        )
        decided.append(verdicts)
        through = max((verdict.through for verdict in verdicts), default=low - 1)
        ran += count_between(
            schedule, through + 1, high, anchor=anchor, calendars=calendars
        ).fires  # due later by jitter
        ran += sum(verdict.action == "run" and not verdict.catch_up for verdict in verdicts)
        caught_up += sum(verdict.catch_up for verdict in verdicts)
        for verdict in verdicts:
            _add(skipped, verdict.reason or "misfire", verdict.count if verdict.action == "skip" else 0)
    return Rehearsal(ran, caught_up, skipped, tuple(decided))


def _stretches(
    start: Instant, end: Instant, outages: Sequence[tuple[Instant, Instant]]
) -> Iterator[tuple[Instant, Instant, bool]]:
    low = start
    for index, (begin, over) in enumerate(outages):
        if not low <= begin < over <= end:
            raise InvalidInput.at(
                f"/outages/{index}", "must lie within the stretch, end after it begins, and follow the one before"
            )
        yield low, begin, False
        yield begin, over, True
        low = over
    yield low, end, False


def _add(skipped: dict[str, int], reason: str, count: int) -> None:
    if count:
        skipped[reason] = skipped.get(reason, 0) + count
