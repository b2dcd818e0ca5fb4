"""What readers get: rows turned into the JSON objects of the API, defaults filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast
from uuid import UUID

import msgspec

from mainspring.core.calendars import Calendar
from mainspring.core.errors import InvalidInput
from mainspring.core.firing import following_occurrence
from mainspring.core.instants import Kind as Fires
from mainspring.core.model import Instant, Job, JobState, JobView, Kind, LogLine, QueueInfo, Run, Stats, WorkerInfo
from mainspring.core.occurrences import NO_CALENDARS
from mainspring.core.policy import policy_of
from mainspring.core.states import State
from mainspring.core.submission import DEFAULTS, MERGED
from mainspring.core.times import utc_text

Json = dict[str, object]

_MAY_NOT_FIRE = ('"calendar":', '"gap":"skip"')
_EMPTY_LISTS = tuple(name for name, value in DEFAULTS.items() if value == ())


def time_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else utc_text(instant)


def text_or_none(identity: UUID | None) -> str | None:
    return None if identity is None else str(identity)


def etag_of(version: int) -> str:
    return f'"{version}"'


def job_fields(job: Job, misfire: str | None = None) -> Json:
    """The fields of a submission as the job has them, what was left out filled in."""
    shown: Json = dict(DEFAULTS)
    document: Mapping[str, object] = json.loads(job.document) if job.document else {}
    shown.update(document)
    for name in MERGED:
        given = document.get(name)
        shown[name] = {**cast(Json, DEFAULTS[name]), **(given if isinstance(given, dict) else {})}
    if misfire is not None and "policy" not in cast(Json, document.get("misfire") or {}):
        cast(Json, shown["misfire"])["policy"] = misfire
    if isinstance(shown["calendar"], dict):
        shown["calendar"] = {"roll": "skip", **shown["calendar"]}
    for name in _EMPTY_LISTS:
        shown[name] = list(cast("list[object]", shown[name]))
    shown["task"] = job.lane.task
    shown["queue"] = job.lane.queue
    shown["priority"] = job.priority
    shown["key"] = job.key
    shown["payload"] = msgspec.json.decode(job.payload)
    return shown


def job_json(view: JobView, misfire: str | None = None, calendars: Mapping[str, Calendar] = NO_CALENDARS) -> Json:
    """A job as the API answers it."""
    job, last = view.job, view.last_run
    return {
        "id": str(job.id),
        "kind": job.kind.word,
        "status": view.status,
        "reason": view.reason,
        **job_fields(job, misfire),
        "next_run_at": time_or_none(next_run_at(job, calendars)),
        "last_run": None if last is None else _last_run(last),
        "version": job.version,
        "created_at": utc_text(job.created_at),
        "updated_at": utc_text(job.updated_at),
        "created_by": job.created_by,
    }


def next_run_at(job: Job, calendars: Mapping[str, Calendar] = NO_CALENDARS) -> Instant | None:
    """When it goes on by itself; a paused job does not. What comes next may be an occurrence that will not fire."""
    if job.kind is Kind.IMMEDIATE or job.state not in (JobState.SCHEDULED, JobState.ACTIVE):
        return None
    if job.next_at is None:
        return None
    if job.document is None or not any(text in job.document for text in _MAY_NOT_FIRE):
        return job.scheduled_at
    try:
        following = following_occurrence(job, job.next_at - 1, calendars, kind=Fires.FIRES)
    except InvalidInput:  # a calendar that was deleted under its job
        return job.scheduled_at
    return None if following is None else following.scheduled_at


def _last_run(run: Run) -> Json:
    return {"id": str(run.id), "status": run.state.word, "finished_at": time_or_none(run.finished_at)}


def run_json(run: Run, *, payload: bool = False) -> Json:
    """A run, or an occurrence that was skipped, as the API answers it."""
    policy = policy_of(run.document)
    shown: Json = {
        "id": str(run.id),
        "job_id": str(run.job_id),
        "task": run.lane.task,
        "queue": run.lane.queue,
        "priority": run.priority,
        "status": run.state.word,
        "reason": run.reason,
        "origin": str(run.origin),
        "replaces": text_or_none(run.replaces),
        "scheduled_at": utc_text(run.scheduled_at),
        "ready_at": utc_text(run.ready_at),
        "started_at": time_or_none(run.started_at),
        "finished_at": time_or_none(run.finished_at),
        "retry_at": utc_text(run.ready_at) if run.state is State.RETRYING else None,
        "lateness_ms": _milliseconds(run.lateness),
        "duration_ms": _milliseconds(_duration(run)),
        "attempt": run.attempt,
        "max_attempts": policy.retry.max_attempts,
        "fence": run.fence,
        "worker": text_or_none(run.worker),
        "cancel_requested_at": time_or_none(run.cancel_requested_at),
        "result": None if run.result is None else msgspec.json.decode(run.result),
        "error": error_of(run.error),
        "progress": None if run.progress is None else json.loads(run.progress),
        "catch_up": run.catch_up,
        "attempts": attempts_of(run),
        "created_at": utc_text(run.created_at),
    }
    if run.state is State.SKIPPED:
        shown["count"] = run.count
    if payload:
        shown["payload"] = msgspec.json.decode(run.payload)
    return shown


def error_of(text: str | None) -> Json | None:
    if text is None:
        return None
    error = json.loads(text)
    given: Json = error if isinstance(error, dict) else {"message": str(error)}
    return {"type": None, "message": None, "traceback": None, **given}


def attempts_of(run: Run) -> list[Json]:
    """Every attempt: what was recorded, and the one of which only the row itself tells."""
    recorded: list[Json] = json.loads(run.attempts) if run.attempts else []
    if run.attempt <= 0 or any(each["number"] == run.attempt for each in recorded):
        return recorded
    own: Json = {
        "number": run.attempt,
        "worker": text_or_none(run.worker),
        "started_at": time_or_none(run.started_at),
        "finished_at": time_or_none(run.finished_at),
        "outcome": _OUTCOMES.get(run.state),
        "error": error_of(run.error) if run.state in (State.FAILED, State.RETRYING) else None,
    }
    return [*recorded, own]


_OUTCOMES = {
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.RETRYING: "failed",
    State.CANCELLED: "cancelled",
    State.UNKNOWN: "lost",
    State.QUEUED: "released",
    State.SKIPPED: "released",
}


def _duration(run: Run) -> int | None:
    return None if run.started_at is None or run.finished_at is None else max(0, run.finished_at - run.started_at)


def _milliseconds(microseconds: int | None) -> float | int | None:
    if microseconds is None:
        return None
    return microseconds // 1000 if microseconds % 1000 == 0 else microseconds / 1000


def log_json(number: int, line: LogLine) -> Json:
    shown: Json = {
        "number": number,
        "at": utc_text(line.at),
        "level": line.level,
        "message": line.message,
        "attempt": line.attempt,
    }
    if line.fields:
        shown["fields"] = json.loads(line.fields)
    return shown


def queue_json(queue: QueueInfo) -> Json:
    return {
        "name": queue.name,
        "paused": queue.paused,
        "queued": queue.queued,
        "running": queue.running,
        "held": queue.held,
        "limits": None if queue.limits is None else json.loads(queue.limits),
    }


def worker_json(worker: WorkerInfo) -> Json:
    return {
        "id": str(worker.id),
        "host": worker.host,
        "pid": worker.pid,
        "queues": list(worker.queues),
        "slots": worker.slots,
        "running": worker.running,
        "started_at": utc_text(worker.started_at),
        "beat_at": utc_text(worker.beat_at),
        "draining": worker.draining,
        "version": worker.version,
    }


def stats_json(stats: Stats) -> Json:
    return {
        "by_status": dict(stats.by_status),
        "queues": [queue_json(queue) for queue in stats.queues],
        "workers": stats.workers,
        "schedulers": stats.schedulers,
        "oldest_ready_at": time_or_none(stats.oldest_ready_at),
        "next_fire_at": time_or_none(stats.next_fire_at),
        "dead_letters": stats.dead_letters,
    }
