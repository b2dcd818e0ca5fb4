"""The coming occurrences of a schedule, as /next and /preview answer them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from mainspring.client.views import Json
from mainspring.core.calendars import Calendar
from mainspring.core.firing import anchor_of, max_runs_of, schedule_of
from mainspring.core.model import DAY, Instant, Job, Kind
from mainspring.core.occurrences import NO_CALENDARS, Schedule, between
from mainspring.core.sources import Occurrence
from mainspring.core.submission import Submission
from mainspring.core.times import local_text, utc_text
from mainspring.core.zone import UTC, Zone

END_OF_TIME: Instant = 2_900_000 * DAY


def coming_of(job: Job, now: Instant, count: int, calendars: Mapping[str, Calendar] = NO_CALENDARS) -> Json:
    """Of a stored job: what of its schedule lies ahead."""
    if job.kind is not Kind.RECURRING:
        waits = job.next_at is not None and job.scheduled_at is not None and not job.state.ended
        return _answer([Occurrence(job.scheduled_at, job.scheduled_at)] if waits and job.scheduled_at else [], UTC)
    if job.state.ended:
        return _answer([], UTC)
    schedule = schedule_of(job.document, job.id)
    return _answer(_ahead(job, schedule, now + 1, END_OF_TIME, count, calendars), schedule.zone)


def coming(
    read: Submission,
    identity: UUID,
    now: Instant,
    start: Instant,
    count: int,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Json:
    """Of a schedule that is not stored; its intervals count from now."""
    return _answer(_of_submission(read, identity, now, start, count, calendars), _zone(read))


def compared(
    read: Submission,
    job: Job,
    now: Instant,
    start: Instant,
    count: int,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Json:
    """The same, and what the job as it is stored has more or less over the same stretch."""
    new = _of_submission(read, job.id, now, start, count, calendars)
    end = new[-1].nominal + 1 if len(new) >= count else END_OF_TIME
    old: list[Occurrence] = []
    if job.kind is Kind.RECURRING and not job.state.ended:
        old = _ahead(job, schedule_of(job.document, job.id), max(start, now + 1), end, count + 1, calendars)
    elif job.scheduled_at is not None and start <= job.scheduled_at < end:
        old = [Occurrence(job.scheduled_at, job.scheduled_at)]
    more, old = len(old) > count, old[:count]
    new_in_sight = [each for each in new if each.nominal <= old[-1].nominal] if more else new
    zone = _zone(read)
    answer = _answer(new, zone)
    answer["adds"] = occurrences_json(_without(new_in_sight, old), zone)
    answer["drops"] = occurrences_json(_without(old, new), zone)
    return answer


def _of_submission(
    read: Submission, identity: UUID, now: Instant, start: Instant, count: int, calendars: Mapping[str, Calendar]
) -> list[Occurrence]:
    if read.kind is not Kind.RECURRING or read.schedule is None:
        due = read.at if read.at is not None else now + (read.delay or 0)
        return [Occurrence(due, due)] if due >= start or read.at is None else []
    most = max_runs_of(read.text)
    anchor = anchor_of(identity)
    found = between(read.schedule, start, END_OF_TIME, anchor=anchor, limit=count, calendars=calendars)
    return _bounded(found, most)


def _ahead(
    job: Job, schedule: Schedule, start: Instant, end: Instant, count: int, calendars: Mapping[str, Calendar]
) -> list[Occurrence]:
    most = max_runs_of(job.document)
    begin = max(start, job.fired_through + 1)
    found = between(schedule, begin, end, anchor=anchor_of(job.id), limit=count, calendars=calendars)
    return _bounded(found, None if most is None else most - job.runs_made)


def _bounded(found: Iterable[Occurrence], runs: int | None) -> list[Occurrence]:
    """At most so many that fire."""
    if runs is None:
        return list(found)
    kept: list[Occurrence] = []
    for each in found:
        if runs <= 0:
            break
        runs -= 1 if each.fires else 0
        kept.append(each)
    return kept


def _without(some: Iterable[Occurrence], others: Iterable[Occurrence]) -> list[Occurrence]:
    known = {each.nominal for each in others if each.fires}
    return [each for each in some if each.fires and each.nominal not in known]


def _zone(read: Submission) -> Zone:
    return UTC if read.schedule is None else read.schedule.zone


def _answer(found: list[Occurrence], zone: Zone) -> Json:
    return {"items": occurrences_json(found, zone), "count": len(found)}


def occurrences_json(found: Iterable[Occurrence], zone: Zone) -> list[Json]:
    return [
        {
            "at": utc_text(each.scheduled_at),
            "local": local_text(each.scheduled_at, zone),
            "timezone": zone.name,
            "fires": each.fires,
            "marks": list(each.marks),
        }
        for each in found
    ]
