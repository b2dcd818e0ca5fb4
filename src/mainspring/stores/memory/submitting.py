"""Jobs enter: as runs if they are for now, as rows of `jobs` otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mainspring.core.errors import Conflict, InvalidInput, KeyTaken
from mainspring.core.ids import instant_of_id
from mainspring.core.model import DAY, Instant, Job, JobState, Kind, NewJob, Run
from mainspring.core.states import State
from mainspring.ports.store import Submitted, jobs_hint
from mainspring.stores.memory.tables import Tables
from mainspring.stores.memory.timetables import note_version


def submit(tables: Tables, jobs: Sequence[NewJob], *, repeat: bool, now: Instant) -> list[Submitted]:
    """Checks all of them before it stores the first."""
    for job in jobs:
        if abs(instant_of_id(job.id) - now) > DAY:
            raise InvalidInput.at("/id", f"{job.id} was made for a time more than a day away from the store's")
    existing = {job.id for job in jobs if repeat and _was_stored(tables, job.id)}
    fresh = [job for job in jobs if job.id not in existing]
    _refuse_taken_ids(tables, fresh)
    _refuse_taken_keys(tables, fresh)
    for job in fresh:
        _store(tables, job, now)
    return [Submitted(job.id, tables.known(job), job.id in existing) for job in jobs]


def _was_stored(tables: Tables, job_id: UUID) -> bool:
    return job_id in tables.jobs or job_id in tables.runs_of_job or tables.run(job_id) is not None


def _refuse_taken_ids(tables: Tables, jobs: Sequence[NewJob]) -> None:
    seen: set[UUID] = set()
    for job in jobs:
        if job.id in seen or job.id in tables.jobs or job.id in tables.runs:
            raise Conflict(f"job {job.id} exists already; a send that may be a repeat must say so")
        seen.add(job.id)


def _refuse_taken_keys(tables: Tables, jobs: Sequence[NewJob]) -> None:
    seen: dict[tuple[str, str], UUID] = {}
    for job in jobs:
        if job.key is None:
            continue
        name = (job.lane.namespace, job.key)
        holder = tables.uniques.get(name) or seen.get(name)
        if holder is not None:
            raise KeyTaken(job.key, str(holder))
        seen[name] = job.id


def _store(tables: Tables, new: NewJob, now: Instant) -> None:
    if new.key is not None:
        tables.uniques[new.lane.namespace, new.key] = new.id
    if new.kind is Kind.IMMEDIATE:
        tables.add_run(_run_of(new, now))
    else:
        job = _job_of(new, now)
        tables.put_job(job)
        if job.kind is Kind.RECURRING:
            note_version(tables, job)
        tables.hint(*jobs_hint((new,)))


def _run_of(new: NewJob, now: Instant) -> Run:
    return Run(
        id=new.id,
        job_id=new.id,
        lane=new.lane,
        kind=new.kind,
        state=State.QUEUED,
        priority=new.priority,
        payload=new.payload,
        document=new.document,
        ready_at=now,
        scheduled_at=now if new.scheduled_at is None else new.scheduled_at,
        created_at=now,
        reason=new.reason,
        key=new.key,
        expires_at=new.expires_at,
        created_by=new.created_by,
    )


def _job_of(new: NewJob, now: Instant) -> Job:
    return Job(
        id=new.id,
        lane=new.lane,
        kind=new.kind,
        state=JobState.ACTIVE if new.kind is Kind.RECURRING else JobState.SCHEDULED,
        priority=new.priority,
        payload=new.payload,
        document=new.document,
        key=new.key,
        next_at=new.next_at,
        scheduled_at=new.next_at if new.scheduled_at is None else new.scheduled_at,
        fired_through=now,
        version=1,
        runs_made=0,
        created_at=now,
        updated_at=now,
        created_by=new.created_by,
        expires_at=new.expires_at,
    )
