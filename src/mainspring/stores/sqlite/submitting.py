"""Jobs enter: as runs if they are for now, as rows of `jobs` otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from mainspring.core.errors import Conflict, InvalidInput, KeyTaken
from mainspring.core.ids import instant_of_id
from mainspring.core.model import DAY, Instant, JobState, Kind, NewJob
from mainspring.ports.store import Submitted, Topic, jobs_hint
from mainspring.stores.sqlite.driver import sqlite3
from mainspring.stores.sqlite.rows import uuid_of
from mainspring.stores.sqlite.session import Session, Value, packed, positions


def submit(session: Session, jobs: Sequence[NewJob], *, repeat: bool, now: Instant | None) -> list[Submitted]:
    instant = session.now(now)
    for job in jobs:
        if abs(instant_of_id(job.id) - instant) > DAY:
            raise InvalidInput.at("/id", f"{job.id} was made for a time more than a day away from the store's")
    existing = _stored(session, [job.id for job in jobs]) if repeat else frozenset()
    fresh = [job for job in jobs if job.id not in existing] if existing else jobs
    _take_keys(session, fresh)
    try:
        _store(session, fresh, instant)
    except sqlite3.IntegrityError as error:
        raise Conflict(_taken_text(session, fresh)) from error
    return [Submitted(job.id, session.is_known(job.lane.namespace, job.lane.task), job.id in existing) for job in jobs]


def key_holder(session: Session, key: str, namespace: str) -> UUID | None:
    for (job_id,) in session.run("key_holder", (namespace, key)).fetchall():
        return uuid_of(job_id)
    return None


def _stored(session: Session, ids: Sequence[UUID]) -> frozenset[UUID]:
    rows = session.run("stored_ids", (packed(ids), positions(len(ids)))).fetchall()
    return frozenset(uuid_of(identity) for (identity,) in rows)


def _take_keys(session: Session, jobs: Sequence[NewJob]) -> None:
    for job in jobs:
        if job.key is None:
            continue
        if session.run("take_key", (job.lane.namespace, job.key, job.id.bytes)).rowcount == 0:
            raise KeyTaken(job.key, str(key_holder(session, job.key, job.lane.namespace)))


def _store(session: Session, jobs: Sequence[NewJob], now: Instant) -> None:
    runs = [_run_values(session, job, now) for job in jobs if job.kind is Kind.IMMEDIATE]
    if len(runs) == 1:
        session.run("add_immediate_run", runs[0])
    elif runs:
        session.many("add_immediate_run", runs)
    for queue in {job.lane.queue for job in jobs if job.kind is Kind.IMMEDIATE}:
        session.hint(Topic.READY, queue)
    if len(runs) == len(jobs):
        return
    later = [job for job in jobs if job.kind is not Kind.IMMEDIATE]
    session.many("add_job", [_job_values(session, job, now) for job in later])
    session.many("add_version", [(job.id.bytes,) for job in later if job.kind is Kind.RECURRING])
    session.hint(*jobs_hint(later))


def _run_values(session: Session, job: NewJob, now: Instant) -> tuple[Value, ...]:
    return (
        job.id.bytes,
        session.lanes.intern(session, job.lane),
        job.priority,
        now,
        now if job.scheduled_at is None else job.scheduled_at,
        job.expires_at,
        job.reason,
        job.key,
        job.created_by,
        job.document,
        job.payload,
    )


def _job_values(session: Session, job: NewJob, now: Instant) -> tuple[Value, ...]:
    return (
        job.id.bytes,
        session.lanes.intern(session, job.lane),
        int(job.kind),
        int(JobState.ACTIVE if job.kind is Kind.RECURRING else JobState.SCHEDULED),
        job.priority,
        job.next_at,
        job.next_at if job.scheduled_at is None else job.scheduled_at,
        now,
        job.expires_at,
        job.key,
        job.created_by,
        job.reason,
        job.document,
        job.payload,
    )


def _taken_text(session: Session, jobs: Sequence[NewJob]) -> str:
    """The batch failed half-way: the first id that is live, be it of this batch or of an earlier send."""
    ids = [job.id for job in jobs]
    rows = session.run("taken_ids", (packed(ids), positions(len(ids)))).fetchall()
    named = uuid_of(rows[0][0]) if rows else "with this id"
    return f"job {named} exists already; a send that may be a repeat must say so"
