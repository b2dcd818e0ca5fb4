"""What users do to jobs and runs after they were submitted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.errors import Conflict, KeyTaken, NotFound
from mainspring.core.model import Instant, Job, JobState, Kind, Run
from mainspring.core.overlap import OverlapVerdict
from mainspring.core.states import Event, State, after
from mainspring.ports.store import CancelOutcome, JobEdit, NewRun, Topic
from mainspring.stores.sqlite.ending import LiveRun, bury, cancel_runs, live_of_job
from mainspring.stores.sqlite.listing import find_job, find_run, find_standing
from mainspring.stores.sqlite.rows import uuid_of
from mainspring.stores.sqlite.scheduling import (
    add_record,
    apply_firing,
    expiry_of,
    guards_hold,
    start_or_hold,
    weigh_overlap,
)
from mainspring.stores.sqlite.session import Session
from mainspring.stores.sqlite.submitting import key_holder

EVENT_OF_RESOLUTION = {
    State.COMPLETED: Event.RESOLVE_COMPLETED,
    State.FAILED: Event.RESOLVE_FAILED,
    State.QUEUED: Event.RESOLVE_RETRY,
}

# --- edits


def change(session: Session, edit: JobEdit, now: Instant | None) -> Job | None:
    instant = session.now(now)
    job = find_job(session, edit.job_id)
    if job is None:
        if find_standing(session, edit.job_id) is not None:
            return None
        raise NotFound(f"no job {edit.job_id}")
    if job.version != edit.version or not _is_current(job, edit):
        return None
    _refuse_taken_key(session, job, edit)
    if edit.firing is not None:
        apply_firing(session, job, edit.firing, instant)
    fired = find_job(session, job.id)
    edited = _edited(fired or job, edit, instant)
    if fired is not None:
        _move_key(session, job, edited)
        _write(session, edited, new_version=edit.definition_changed)
    session.hint(Topic.JOBS)
    return edited


def _is_current(job: Job, edit: JobEdit) -> bool:
    """Whether nobody fired what the edit decided about, or beyond what it says comes next."""
    if edit.firing is not None and (job.state.ended or not guards_hold(job, edit.firing)):
        return False
    if job.kind is not Kind.RECURRING or edit.next_at is None:
        return True
    return edit.next_at > max(job.fired_through, edit.fired_through or 0)


def _edited(job: Job, edit: JobEdit, now: Instant) -> Job:
    state = job.state if edit.state is None else edit.state
    return replace(
        job,
        state=state,
        lane=edit.lane or job.lane,
        priority=job.priority if edit.priority is None else edit.priority,
        payload=job.payload if edit.payload is None else edit.payload,
        document=job.document if edit.document is None else edit.document,
        key=job.key if edit.key is None else edit.key,
        expires_at=job.expires_at if edit.expires_at is None else edit.expires_at,
        next_at=edit.next_at,
        scheduled_at=edit.next_at if edit.next_scheduled_at is None else edit.next_scheduled_at,
        fired_through=max(job.fired_through, edit.fired_through or 0),
        version=job.version + 1,
        updated_at=now,
        paused_at=(job.paused_at or now) if state is JobState.PAUSED else None,
    )


def _write(session: Session, job: Job, *, new_version: bool) -> None:
    session.run(
        "edit_job",
        (
            job.id.bytes,
            session.lanes.intern(session, job.lane),
            int(job.state),
            job.priority,
            job.payload,
            job.document,
            job.key,
            job.expires_at,
            job.next_at,
            job.scheduled_at,
            job.fired_through,
            job.version,
            job.updated_at,
            job.paused_at,
        ),
    )
    if new_version and job.kind is Kind.RECURRING:
        session.run("add_version", (job.id.bytes,))


def _refuse_taken_key(session: Session, job: Job, edit: JobEdit) -> None:
    if edit.key is None:
        return
    holder = key_holder(session, edit.key, job.lane.namespace)
    if holder is not None and holder != job.id:
        raise KeyTaken(edit.key, str(holder))


def _move_key(session: Session, before: Job, edited: Job) -> None:
    namespace = edited.lane.namespace
    if before.key is not None and (before.key != edited.key or edited.state.ended):
        session.run("free_key", (namespace, before.key, edited.id.bytes))
    if edited.key is not None and not edited.state.ended:
        session.run("take_key", (namespace, edited.key, edited.id.bytes))


# --- cancel, delete


def cancel(session: Session, ids: Sequence[UUID], *, delete: bool, now: Instant | None) -> list[CancelOutcome]:
    instant = session.now(now)
    for identity in ids:
        if not _is_job(session, identity) and find_run(session, identity) is None:
            raise NotFound(f"no job or run {identity}")
    return [_cancel_one(session, identity, delete=delete, now=instant) for identity in ids]


def _is_job(session: Session, identity: UUID) -> bool:
    return find_job(session, identity) is not None or find_standing(session, identity) is not None


def _cancel_one(session: Session, identity: UUID, *, delete: bool, now: Instant) -> CancelOutcome:
    if not _is_job(session, identity):
        run = find_run(session, identity)
        if run is None:  # deleted by an earlier id of this batch
            return CancelOutcome(identity, job_changed=False, ended=(), asked=())
        runs = [live for live in live_of_job(session, run.job_id) if live.id == identity.bytes]
        return _cancel_runs(session, run.job_id, runs, now)
    runs = live_of_job(session, identity)
    changed, record = _cancel_row(session, identity, now)
    outcome = _cancel_runs(session, identity, runs, now)
    if delete:
        _forget(session, identity)
    return outcome._replace(
        job_changed=changed or delete, ended=outcome.ended if record is None else (record, *outcome.ended)
    )


def _cancel_row(session: Session, job_id: UUID, now: Instant) -> tuple[bool, UUID | None]:
    job = find_job(session, job_id)
    if job is None or job.state.ended:
        return False, None
    session.hint(Topic.JOBS)
    if job.key is not None:
        session.run("free_key", (job.lane.namespace, job.key, job.id.bytes))
    if job.kind is Kind.RECURRING:
        ended = replace(job, state=JobState.CANCELLED, next_at=None, scheduled_at=None, paused_at=None)
        _write(session, replace(ended, version=job.version + 1, updated_at=now), new_version=False)
        return True, None
    session.run("drop_job", (job_id.bytes,))
    nominal = job.created_at if job.next_at is None else job.next_at
    return True, add_record(session, job, nominal, job.scheduled_at or nominal, State.CANCELLED, None, now)


def _cancel_runs(session: Session, job_id: UUID, runs: Iterable[LiveRun], now: Instant) -> CancelOutcome:
    ended, asked = cancel_runs(session, runs, now)
    return CancelOutcome(job_id, job_changed=False, ended=tuple(map(uuid_of, ended)), asked=tuple(map(uuid_of, asked)))


def _forget(session: Session, job_id: UUID) -> None:
    job = find_job(session, job_id)
    if job is not None:
        session.run("drop_job", (job_id.bytes,))
        session.run("drop_versions", (job_id.bytes,))
        if job.key is not None:
            session.run("free_key", (job.lane.namespace, job.key, job_id.bytes))
    standing = find_standing(session, job_id)
    if standing is not None:
        number, run = standing
        session.run("unstand_past" if run.state.ended else "unstand_live", (number,))
        if run.key is not None:
            session.run("free_key", (run.lane.namespace, run.key, job_id.bytes))


# --- runs beside the schedule


def add_runs(
    session: Session,
    runs: Sequence[NewRun],
    *,
    respect_overlap: bool,
    redeem_dead_letters: bool,
    now: Instant | None,
) -> list[Run]:
    instant = session.now(now)
    for new in runs:
        if redeem_dead_letters:
            _redeem(session, new)
        _add_run(session, new, respect_overlap=respect_overlap, now=instant)
    made = [find_run(session, new.id) for new in runs]
    return [run for run in made if run is not None]


def _redeem(session: Session, new: NewRun) -> None:
    replaced = new.replaces
    if replaced is None or session.run("drop_dead_letter", (replaced.bytes,)).rowcount == 0:
        raise Conflict(f"run {replaced} is no dead letter any more: it was replayed or discarded")


def _source_of(session: Session, new: NewRun) -> Job | Run:
    """What the new run takes its lane, priority, payload and document from."""
    if new.replaces is not None:
        replaced = find_run(session, new.replaces, shown=False)
        if replaced is None:
            raise NotFound(f"no run {new.replaces}")
        return new.over(replaced)
    job = find_job(session, new.job_id)
    if job is not None:
        if job.state is JobState.CANCELLED:
            raise Conflict(f"job {new.job_id} is cancelled")
        return new.over(job)
    standing = find_standing(session, new.job_id)
    if standing is None:
        raise NotFound(f"no job {new.job_id}")
    return new.over(standing[1])


def _add_run(session: Session, new: NewRun, *, respect_overlap: bool, now: Instant) -> None:
    if find_run(session, new.id) is not None:
        raise Conflict(f"run {new.id} exists already")
    source = _source_of(session, new)
    verdict = OverlapVerdict.START
    if respect_overlap:
        verdict = weigh_overlap(session, new.job_id, source.document, catch_up=new.catch_up)
        if verdict is OverlapVerdict.SKIP:
            raise Conflict(
                f"job {new.job_id} has a run that has not ended, and its overlap rule takes no other one now"
            )
    is_its_run = isinstance(source, Job) and source.kind is not Kind.RECURRING
    if is_its_run:
        session.run("drop_job", (new.job_id.bytes,))
        session.hint(Topic.JOBS)
    start_or_hold(session, _run_of(new, source, now, is_its_run=is_its_run), verdict, now)


def _run_of(new: NewRun, source: Job | Run, now: Instant, *, is_its_run: bool) -> Run:
    document = source.document
    scheduled_at = now if new.scheduled_at is None else new.scheduled_at
    return Run(
        id=new.id,
        job_id=new.job_id,
        lane=source.lane,
        kind=source.kind,
        state=State.QUEUED,
        priority=source.priority,
        payload=source.payload if new.payload is None else new.payload,
        document=document,
        ready_at=now,
        scheduled_at=scheduled_at,
        created_at=source.created_at if is_its_run else now,
        key=source.key if is_its_run else None,
        origin=new.origin,
        replaces=new.replaces,
        expires_at=expiry_of(document, scheduled_at, now),
        catch_up=new.catch_up,
        stands_for_job=is_its_run,
        created_by=new.created_by,
    )


# --- single runs


def retry_now(session: Session, run_id: UUID, now: Instant | None) -> bool:
    lanes = session.run("retry_now", (run_id.bytes, session.now(now))).fetchall()
    for (lane,) in lanes:
        session.ready(lane)
    return bool(lanes)


def resolve(session: Session, run_id: UUID, state: int, note: str | None, now: Instant | None) -> bool:
    target = after(State.UNKNOWN, EVENT_OF_RESOLUTION[State(state)])
    found = session.run("resolve_unknown", (run_id.bytes, int(target), note)).fetchall()
    for number, lane in found:
        if target.ended:
            bury(session, [number], session.now(now))
        else:
            session.ready(lane)
    return bool(found)


def purge_queue(session: Session, name: str, namespace: str, now: Instant | None) -> int:
    """Runs that the first endings release into the queue are purged too: they were held in it."""
    lanes = [
        identity
        for lane, identity in session.lanes.all(session).items()
        if lane.namespace == namespace and lane.queue == name
    ]
    rows = session.run("waiting_in_lanes", (json.dumps(lanes),)).fetchall()
    runs = [LiveRun(number, i, State(state), reason, w, at) for number, i, state, reason, w, at in rows]
    ended, _ = cancel_runs(session, runs, session.now(now))
    return len(ended)


def discard_dead_letters(session: Session, ids: Sequence[UUID]) -> list[bool]:
    return [session.run("drop_dead_letter", (run_id.bytes,)).rowcount == 1 for run_id in ids]
