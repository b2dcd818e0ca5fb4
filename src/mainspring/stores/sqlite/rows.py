"""Rows of the file as the nouns of the core."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID, SafeUUID

from mainspring.core.model import Job, JobState, Kind, Run, WorkerInfo
from mainspring.core.states import State
from mainspring.stores.sqlite.driver import sqlite3
from mainspring.stores.sqlite.session import Session

NO_WORKER = "no_worker"
UNIT = "\x1f"  # between the names of queues in one text

_KINDS = {int(kind): kind for kind in Kind}
_STATES = {int(state): state for state in State}
_JOB_STATES = {int(state): state for state in JobState}
_new = object.__new__
_set = object.__setattr__
_from_bytes = int.from_bytes
_UNKNOWN = SafeUUID.unknown


def uuid_of(raw: bytes) -> UUID:
    """UUID(bytes=raw), three times as fast: it is called twice a run."""
    identity = _new(UUID)
    _set(identity, "int", _from_bytes(raw, "big"))
    _set(identity, "is_safe", _UNKNOWN)
    return identity


def maybe_uuid(raw: bytes | None) -> UUID | None:
    return None if raw is None else uuid_of(raw)


def raw_of(identity: UUID | None) -> bytes | None:
    return None if identity is None else identity.bytes


def read_runs(session: Session, cursor: Iterable[sqlite3.Row], *, shown: bool = True) -> list[Run]:
    """Rows of the views `live_runs` and `past_runs`. `shown`: queued without anybody who could do it shows as held."""
    found = []
    for row in cursor:
        (
            _number, identity, job_id, lane, kind, state, priority, payload, document, ready_at, scheduled_at,
            created_at, fence, attempt, spent, deaths, reason, key, origin, replaces, worker, started_at, finished_at,
            lateness, expires_at, cancel_requested_at, progress, result, error, attempts, count, catch_up, stands,
            created_by,
        ) = row  # fmt: skip
        run = Run(
            id=uuid_of(identity),
            job_id=uuid_of(job_id),
            lane=session.lanes.lane(session, lane),
            kind=_KINDS[kind],
            state=_STATES[state],
            priority=priority,
            payload=payload,
            document=document,
            ready_at=ready_at,
            scheduled_at=scheduled_at,
            created_at=created_at,
            fence=fence,
            attempt=attempt,
            spent=spent,
            deaths=deaths,
            reason=reason,
            key=key,
            origin=origin,
            replaces=maybe_uuid(replaces),
            worker=maybe_uuid(worker),
            started_at=started_at,
            finished_at=finished_at,
            lateness=lateness,
            expires_at=expires_at,
            cancel_requested_at=cancel_requested_at,
            progress=progress,
            result=result,
            error=error,
            attempts=attempts,
            count=count,
            catch_up=bool(catch_up),
            stands_for_job=bool(stands),
            created_by=created_by,
        )
        if shown and run.state is State.QUEUED and not session.is_known(run.lane.namespace, run.lane.task):
            run.state = State.HELD
            run.reason = NO_WORKER
        found.append(run)
    return found


def read_jobs(session: Session, cursor: sqlite3.Cursor) -> list[Job]:
    """Rows of `jobs`."""
    return [
        Job(
            id=uuid_of(identity),
            lane=session.lanes.lane(session, lane),
            kind=_KINDS[kind],
            state=_JOB_STATES[state],
            priority=priority,
            payload=payload,
            document=document,
            key=key,
            next_at=next_at,
            scheduled_at=scheduled_at,
            fired_through=fired_through,
            version=version,
            runs_made=runs_made,
            created_at=created_at,
            updated_at=updated_at,
            created_by=created_by,
            paused_at=paused_at,
            expires_at=expires_at,
        )
        for identity, lane, kind, state, priority, payload, document, key, next_at, scheduled_at, fired_through,
            version, runs_made, created_at, updated_at, created_by, paused_at, expires_at in cursor
    ]  # fmt: skip


def read_workers(cursor: sqlite3.Cursor) -> list[WorkerInfo]:
    return [
        WorkerInfo(
            id=uuid_of(identity),
            host=host,
            pid=pid,
            queues=tuple(queues.split(UNIT)) if queues else (),
            slots=slots,
            version=version,
            lease=lease,
            namespace=namespace,
            keeper=maybe_uuid(keeper),
            started_at=started_at,
            beat_at=beat_at,
            beat=beat,
            running=running,
            draining=bool(draining),
            lost_at=lost_at,
            evidence=evidence,
        )
        for identity, namespace, host, pid, queues, slots, version, lease, keeper, started_at, beat_at, beat, draining,
            lost_at, evidence, running in cursor
    ]  # fmt: skip
