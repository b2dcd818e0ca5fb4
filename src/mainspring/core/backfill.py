"""Which instants of the past a backfill carries out, each by the definition that was in force then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.core.calendars import Calendar
from mainspring.core.firing import anchor_of, schedule_of
from mainspring.core.ids import derived_id
from mainspring.core.model import Instant
from mainspring.core.occurrences import NO_CALENDARS, Schedule, next_after, previous_before
from mainspring.core.sources import Occurrence
from mainspring.core.zone import UTC, Zone


class Definition(NamedTuple):
    """What of a definition says when; `since` is when it came into force."""

    since: Instant
    document: str | None


class PastInstant(NamedTuple):
    """An occurrence and the place, among the definitions, of the one that it goes by."""

    occurrence: Occurrence
    definition: int
    zone: Zone = UTC


def past_instants(
    definitions: Sequence[Definition],
    job_id: UUID,
    start: Instant,
    end: Instant,
    *,
    newest_first: bool = False,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Iterator[PastInstant]:
    """From `start` up to `end` (not included), one by one; before the first definition its schedule counts too."""
    stretches = []
    for place, definition in enumerate(definitions):
        low = start if place == 0 else max(start, definition.since)
        high = end if place + 1 == len(definitions) else min(end, definitions[place + 1].since)
        if low < high:
            stretches.append((place, low, high, schedule_of(definition.document, job_id)))
    for place, low, high, schedule in reversed(stretches) if newest_first else stretches:
        walk = _backwards if newest_first else _forwards
        for occurrence in walk(schedule, low, high, _anchor(schedule, job_id, low), calendars):
            yield PastInstant(occurrence, place, schedule.zone)


def backfill_id(job_id: UUID, nominal: Instant) -> UUID:
    """The id of the first run that a backfill makes of an instant: asking twice makes one."""
    return derived_id(job_id, "backfill", nominal)


def _anchor(schedule: Schedule, job_id: UUID, low: Instant) -> Instant:
    """An interval keeps its beat in the time before its job was made."""
    anchor = anchor_of(job_id)
    if schedule.every is None or schedule.start_at is not None or low > anchor:
        return anchor
    return anchor - ((anchor - low) // schedule.every + 2) * schedule.every


def _forwards(
    schedule: Schedule, low: Instant, high: Instant, anchor: Instant, calendars: Mapping[str, Calendar]
) -> Iterator[Occurrence]:
    found = next_after(schedule, low - 1, anchor=anchor, calendars=calendars)
    while found is not None and found.nominal < high:
        yield found
        found = next_after(schedule, found.nominal, anchor=anchor, calendars=calendars)


def _backwards(
    schedule: Schedule, low: Instant, high: Instant, anchor: Instant, calendars: Mapping[str, Calendar]
) -> Iterator[Occurrence]:
    found = previous_before(schedule, high, anchor=anchor, calendars=calendars)
    while found is not None and found.nominal >= low:
        yield found
        found = previous_before(schedule, found.nominal, anchor=anchor, calendars=calendars)
