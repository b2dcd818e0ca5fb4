"""What a change of a stored job comes to: pure, from the job, what is asked, and the store's now.

An edit first decides, by the definition that held until now, what is due up to now; then the new one counts from now.
So no edit makes misfires, and none loses an occurrence that was due before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mainspring.client.submission import first_instants
from mainspring.core.calendars import Calendar
from mainspring.core.errors import Conflict, InvalidInput
from mainspring.core.firing import following_occurrence, max_runs_of, plan_firing
from mainspring.core.model import DAY, Firing, Instant, Job, JobState, JobView, Kind, Lane
from mainspring.core.occurrences import NO_CALENDARS
from mainspring.core.submission import MERGED, WHAT, WHEN, Submission, read_submission
from mainspring.ports.store import JobEdit

NEVER_EXPIRES: Instant = 2_900_000 * DAY
_SCHEDULE = (*WHEN, "dialect", "every_nth", "timezone", "dst", "calendar", "start_at", "end_at", "max_runs", "jitter", "spread")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Definition:
    """What a job is to become; `restarts`: its delay is said anew and counts from now."""

    read: Submission
    restarts: bool = False


def refuse_unless_changeable(view: JobView, verb: str) -> None:
    """A job that has become a run, or has ended, is changed no more."""
    job = view.job
    if job.kind is Kind.IMMEDIATE or (job.kind is Kind.DELAYED and view.status not in ("scheduled", "paused")):
        raise Conflict(f"job {job.id} has become a run, which is {view.status}: it takes no {verb}")
    if job.state.ended:
        raise Conflict(f"job {job.id} is {view.status}: it takes no {verb}")


def pause(job: Job, now: Instant, misfire: str | None, calendars: Mapping[str, Calendar] = NO_CALENDARS) -> JobEdit:
    if job.kind is not Kind.RECURRING:
        _refuse_if_due(job, now)
        return _kept(job, state=JobState.PAUSED)
    firing = plan_firing(job, now, misfire=misfire, calendars=calendars)
    return _after_firing(job, firing, JobState.PAUSED, calendars)


def resume(job: Job, now: Instant, catch_up: str | None, calendars: Mapping[str, Calendar] = NO_CALENDARS) -> JobEdit:
    if job.kind is not Kind.RECURRING:
        return _kept(job, state=JobState.SCHEDULED)
    firing = plan_firing(job, now, paused=True, resume=catch_up, calendars=calendars)
    return _after_firing(job, firing, JobState.ACTIVE, calendars)


def merge(job: Job, changes: object) -> Definition:
    """The job with the changes laid over it. Naming another way to say when (or what) replaces the earlier one."""
    if not isinstance(changes, Mapping):
        raise InvalidInput.at("", "must be an object with the fields to change")
    if "key" in changes and changes["key"] is None and job.key is not None:
        raise InvalidInput.at("/key", "cannot be taken away; cancel the job and create it anew")
    document: dict[str, object] = json.loads(job.document) if job.document else {}
    merged: dict[str, object] = {"task": job.lane.task, "queue": job.lane.queue, "priority": job.priority, **document}
    if job.key is not None:
        merged["key"] = job.key
    for group in (WHEN, WHAT):
        if any(changes.get(name) is not None for name in group):
            merged = {name: value for name, value in merged.items() if name not in group}
    for name, value in changes.items():
        held = merged.get(name)
        merged[name] = (
            {**held, **value} if name in MERGED and isinstance(held, dict) and isinstance(value, dict) else value
        )
    encoded = None if "payload" in changes else job.payload
    read = read_submission(merged, encoded_payload=encoded, job_id=job.id)
    return Definition(read, restarts=changes.get("delay") is not None)


def redefine(
    job: Job,
    definition: Definition,
    now: Instant,
    misfire: str | None,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
) -> JobEdit | None:
    """The edit that makes the job so; None where it is so already."""
    read = definition.read
    _refuse_other_kind(job, read)
    before = json.loads(job.document) if job.document else {}
    changed = (
        read.document != before
        or read.payload != job.payload
        or (read.task, read.queue, read.priority, read.key or job.key)
        != (job.lane.task, job.lane.queue, job.priority, job.key)
    )
    if not changed and not definition.restarts:
        return None
    same_schedule = not definition.restarts and all(read.document.get(name) == before.get(name) for name in _SCHEDULE)
    edit = _with_instants(job, read, now, misfire, calendars, same_schedule=same_schedule)
    return replace(
        edit,
        lane=Lane(job.lane.namespace, read.queue, read.task),
        priority=read.priority,
        payload=read.payload,
        document=read.text or "{}",
        key=None if read.key == job.key else read.key,
        definition_changed=True,
    )


def _refuse_other_kind(job: Job, read: Submission) -> None:
    if read.kind is not job.kind:
        words = f"{job.kind.word}, and cannot become {read.kind.word}; cancel it and create another"
        named = next((name for name in WHEN if name in read.document), "task")
        raise InvalidInput.at(f"/{named}", f"job {job.id} is {words}")


def _with_instants(
    job: Job,
    read: Submission,
    now: Instant,
    misfire: str | None,
    calendars: Mapping[str, Calendar],
    *,
    same_schedule: bool,
) -> JobEdit:
    if job.kind is Kind.DELAYED:
        return _delayed(job, read, now, same_schedule=same_schedule)
    paused = job.state is JobState.PAUSED
    if same_schedule:
        firing = None if paused else plan_firing(job, now, misfire=misfire, calendars=calendars)
        return _after_firing(job, firing, job.state, calendars)
    firing = plan_firing(job, now, misfire=misfire, paused=paused, calendars=calendars)
    since = max(now, job.fired_through)  # an occurrence may have been laid out a moment ahead
    next_at, scheduled_at, _ = first_instants(read, job.id, since, calendars)
    edit = JobEdit(
        job.id, job.version, next_at=next_at, next_scheduled_at=scheduled_at, fired_through=since, firing=firing
    )
    most = max_runs_of(read.text)
    made = job.runs_made + (0 if firing is None else len(firing.runs))
    if most is not None and made >= most:
        return replace(edit, state=JobState.FINISHED, next_at=None, next_scheduled_at=None)
    return edit


def _delayed(job: Job, read: Submission, now: Instant, *, same_schedule: bool) -> JobEdit:
    _refuse_if_due(job, now)
    if same_schedule:
        edit = _kept(job)
    else:
        due = read.at if read.at is not None else now + (read.delay or 0)
        edit = JobEdit(job.id, job.version, next_at=due, next_scheduled_at=due, fired_through=now)
    expires_at = NEVER_EXPIRES
    if read.expires_in is not None:
        expires_at = max(edit.next_scheduled_at or now, now) + read.expires_in
    return replace(edit, expires_at=expires_at if read.expires_in is not None or job.expires_at else None)


def _refuse_if_due(job: Job, now: Instant) -> None:
    if job.state is JobState.SCHEDULED and job.scheduled_at is not None and job.scheduled_at <= now:
        raise Conflict(f"job {job.id} is due and is becoming a run")


def _after_firing(job: Job, firing: Firing | None, state: JobState, calendars: Mapping[str, Calendar]) -> JobEdit:
    """The edit to this state, what was due being fired first; a job with nothing to come is finished."""
    if firing is None:
        following = following_occurrence(job, job.fired_through, calendars)
        next_at = None if following is None else following.nominal
        scheduled_at = None if following is None else following.scheduled_at
    else:
        next_at, scheduled_at = firing.next_at, firing.next_scheduled_at
    return JobEdit(
        job.id,
        job.version,
        state=JobState.FINISHED if next_at is None else state,
        next_at=next_at,
        next_scheduled_at=scheduled_at,
        firing=firing,
    )


def _kept(job: Job, state: JobState | None = None) -> JobEdit:
    return JobEdit(job.id, job.version, state=state, next_at=job.next_at, next_scheduled_at=job.scheduled_at)
