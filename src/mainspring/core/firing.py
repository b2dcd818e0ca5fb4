"""What is to be done about a job at an instant: which occurrences run, which are recorded as skipped, what comes next.

One pure decision, used by whoever fires, edits, pauses or resumes, so that all of them agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from uuid import UUID

from mainspring.core.calendars import Calendar
from mainspring.core.ids import instant_of_id
from mainspring.core.instants import Kind as Fires
from mainspring.core.misfire import Misfire, Verdict, catch_up
from mainspring.core.model import DueOccurrence, Firing, Instant, Job, Kind, SkippedOccurrence
from mainspring.core.occurrences import NO_CALENDARS, Schedule, count_between, next_after, previous_before
from mainspring.core.schedule import read_schedule
from mainspring.core.sources import Occurrence
from mainspring.core.times import read_duration


def plan_firing(
    job: Job,
    now: Instant,
    *,
    misfire: str | None = None,
    paused: bool = False,
    resume: str | None = None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> Firing | None:
    """All that is due up to now and not decided yet; None if nothing is.

    `misfire` is the policy of jobs that name none. `paused`: the job was paused, what fell due is skipped(paused)
    unless `resume` is once or all. The firing of a one-time job has its only occurrence.
    """
    if job.kind is not Kind.RECURRING:
        return _one_time(job, now, paused=paused)
    schedule = schedule_of(job.document, job.id)
    if paused and resume is None:
        verdicts = _skipped_while_paused(job, schedule, now, calendars)
    else:
        rule = Misfire(resume, limit=misfire_of(job.document).limit) if resume else misfire_of(job.document, misfire)
        verdicts = catch_up(
            schedule,
            fired_through=job.fired_through,
            now=now,
            anchor=anchor_of(job.id),
            misfire=rule,
            calendars=calendars,
            some_late=resume is None,
        )
        if resume:  # what is left out was missed because of the pause, however little it is overdue
            verdicts = tuple(replace(each, reason="paused") if each.reason == "misfire" else each for each in verdicts)
    return _firing(job, schedule, verdicts, calendars) if verdicts else None


def following_occurrence(
    job: Job, after: Instant, calendars: Mapping[str, Calendar] = NO_CALENDARS, *, kind: Fires = Fires.ANY
) -> Occurrence | None:
    """The first occurrence of a recurring job after the instant, or None; of this kind: those that fire or do not."""
    schedule = schedule_of(job.document, job.id)
    return next_after(schedule, after, anchor=anchor_of(job.id), calendars=calendars, kind=kind)


def anchor_of(job_id: UUID) -> Instant:
    """Where intervals count from: the instant in the job's id, which its submitter knew too when it computed `next_at`."""
    return instant_of_id(job_id)


@lru_cache(maxsize=8192)
def schedule_of(document: str | None, job_id: UUID) -> Schedule:
    """The schedule in a stored document, read once."""
    return read_schedule(json.loads(document or "{}"), job_id=job_id)


@lru_cache(maxsize=4096)
def misfire_of(document: str | None, policy: str | None = None) -> Misfire:
    """The misfire rule in a stored document; `policy` is that of jobs which name none."""
    value = json.loads(document).get("misfire") if document else None
    given: Mapping[str, object] = {"policy": value} if isinstance(value, str) else value or {}
    window, limit = given.get("window"), given.get("limit")
    return Misfire(
        policy=str(given.get("policy") or policy or "once"),
        window=None if window is None else read_duration(window, "/misfire/window"),
        limit=100 if not isinstance(limit, int) else limit,
    )


def max_runs_of(document: str | None) -> int | None:
    """How many runs the job may have in all."""
    value = json.loads(document).get("max_runs") if document else None
    return value if isinstance(value, int) else None


def _one_time(job: Job, now: Instant, *, paused: bool) -> Firing | None:
    if job.next_at is None or job.scheduled_at is None or job.scheduled_at > now or paused:
        return None
    run = DueOccurrence(job.next_at, job.scheduled_at)
    return Firing(job.id, job.version, runs=(run,), fired_through=job.next_at)


def _firing(job: Job, schedule: Schedule, verdicts: tuple[Verdict, ...], calendars: Mapping[str, Calendar]) -> Firing:
    runs = [
        DueOccurrence(verdict.nominal, verdict.scheduled_at, verdict.catch_up)
        for verdict in verdicts
        if verdict.action == "run"
    ]
    skips = [
        SkippedOccurrence(verdict.nominal, verdict.scheduled_at, verdict.reason or "misfire", verdict.count)
        for verdict in verdicts
        if verdict.action == "skip"
    ]
    through = max(verdict.through for verdict in verdicts)
    following = next_after(schedule, through, anchor=anchor_of(job.id), calendars=calendars)
    most = max_runs_of(job.document)
    if most is not None and job.runs_made + len(runs) >= most:
        runs, following = runs[: max(0, most - job.runs_made)], None
    return Firing(
        job_id=job.id,
        version=job.version,
        runs=tuple(runs),
        skips=tuple(skips),
        fired_through=through,
        next_at=None if following is None else following.nominal,
        next_scheduled_at=None if following is None else following.scheduled_at,
    )


def _skipped_while_paused(
    job: Job, schedule: Schedule, now: Instant, calendars: Mapping[str, Calendar]
) -> tuple[Verdict, ...]:
    anchor = anchor_of(job.id)
    first = next_after(schedule, job.fired_through, anchor=anchor, calendars=calendars)
    if first is None or first.scheduled_at > now:
        return ()
    through = now
    last = previous_before(schedule, now + 1, anchor=anchor, calendars=calendars)
    if last is not None and last.scheduled_at > now:
        through = last.nominal - 1  # jitter holds it back: it is still to come
    counts = count_between(schedule, job.fired_through + 1, through + 1, anchor=anchor, calendars=calendars)
    missed = counts.fires + counts.gap + counts.closed
    return (Verdict(first.nominal, first.scheduled_at, "skip", "paused", count=max(1, missed), through=through),)
