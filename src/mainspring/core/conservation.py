"""Whether every occurrence that a job had is accounted for: expected = ran + skipped + cancelled + pending.

Pure: what was expected is counted from the definitions in force at each time, what is recorded from the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from mainspring.core.backfill import Definition
from mainspring.core.calendars import Calendar
from mainspring.core.firing import anchor_of, max_runs_of, schedule_of
from mainspring.core.model import Instant, Job, Origin, Run
from mainspring.core.occurrences import NO_CALENDARS, count_between
from mainspring.core.states import State


@dataclass(frozen=True, slots=True)
class Account:
    """Of one job, over one stretch of time."""

    expected: int
    ran: int
    skipped: int
    cancelled: int
    pending: int
    slack: int = 0
    """How many may be missing: what jitter held back while its definition was replaced."""

    @property
    def recorded(self) -> int:
        return self.ran + self.skipped + self.cancelled + self.pending

    @property
    def balanced(self) -> bool:
        return self.expected - self.slack <= self.recorded <= self.expected


def account(
    job: Job,
    definitions: Sequence[Definition],
    records: Iterable[Run],
    since: Instant,
    *,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Account:
    """`records`: what the schedule made of instants after `since`; the newest definition stands last."""
    counts = {"ran": 0, "skipped": 0, "cancelled": 0, "pending": 0}
    latest = since
    for run in records:
        if run.origin != Origin.SCHEDULE:
            continue
        latest = max(latest, run.scheduled_at)
        counts[_kind(run)] += run.count
    through = job.fired_through
    if job.state.ended and max_runs_of(job.document) is not None:
        through = min(through, latest)  # what fell due with the last run was nobody's any more
    jittered = sum(_moves(definition.document) for definition in definitions[:-1])
    return Account(_expected(job.id, definitions, since, through, calendars), **counts, slack=jittered)


def can_be_counted(document: str | None, calendars: Mapping[str, Calendar]) -> bool:
    """A calendar that moves occurrences and has changed since does not say any more how many there were."""
    given = json.loads(document or "{}").get("calendar")
    if not isinstance(given, dict):
        return True
    calendar = calendars.get(str(given["name"]))
    fixed = given.get("roll", "skip") == "skip" and given.get("working_day") is None
    return calendar is not None and (fixed or calendar.version == 1)


def repeated(records: Iterable[Run]) -> list[UUID]:
    """Occurrences with more than one record: the id of a scheduled run names its job and instant."""
    seen: set[UUID] = set()
    twice: list[UUID] = []
    for run in records:
        if run.origin == Origin.SCHEDULE and run.id in seen:
            twice.append(run.id)
        seen.add(run.id)
    return twice


def _expected(
    job_id: UUID,
    definitions: Sequence[Definition],
    since: Instant,
    through: Instant,
    calendars: Mapping[str, Calendar],
) -> int:
    total = 0
    for place, definition in enumerate(definitions):
        low = since if place == 0 else max(since, definition.since)
        high = through if place + 1 == len(definitions) else min(through, definitions[place + 1].since)
        if low < high:
            schedule = schedule_of(definition.document, job_id)
            counts = count_between(schedule, low + 1, high + 1, anchor=anchor_of(job_id), calendars=calendars)
            total += counts.fires + counts.gap + counts.closed
    return total


def _kind(run: Run) -> str:
    if run.state is State.SKIPPED:
        return "skipped"
    if run.state is State.CANCELLED:
        return "cancelled"
    return "ran" if run.state.ended else "pending"


def _moves(document: str | None) -> bool:
    given = json.loads(document or "{}")
    return bool(given.get("jitter") or given.get("spread"))
