"""What users do to jobs and runs after they were submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.errors import Conflict, KeyTaken, NotFound
from mainspring.core.model import Instant, Job, JobState, Kind, Run
from mainspring.core.overlap import OverlapVerdict
from mainspring.core.states import Event, State
from mainspring.ports.store import CancelOutcome, JobEdit, NewRun, Topic
from mainspring.stores.memory.firing import (
    apply_firing,
    cancel_run,
    ended_record,
    expiry_of,
    guards_hold,
    start_or_hold,
    weigh_overlap,
)
from mainspring.stores.memory.tables import Tables
from mainspring.stores.memory.timetables import note_version

EVENT_OF_RESOLUTION = {
    State.COMPLETED: Event.RESOLVE_COMPLETED,
    State.FAILED: Event.RESOLVE_FAILED,
    State.QUEUED: Event.RESOLVE_RETRY,
}


# --- edits


def change(tables: Tables, edit: JobEdit, now: Instant) -> Job | None:
    job = tables.jobs.get(edit.job_id)
    if job is None:
        if edit.job_id in tables.standing:
            return None
        raise NotFound(f"no job {edit.job_id}")
    if job.version != edit.version or not _is_current(job, edit):
        return None
    _refuse_taken_key(tables, job, edit)
    if edit.firing is not None:
        apply_firing(tables, job, edit.firing, now)
    fired = tables.jobs.get(job.id)
    edited = _edited(fired or job, edit, now)
    if fired is not None:
        _move_key(tables, job, edited)
        tables.put_job(edited)
        if edit.definition_changed and edited.kind is Kind.RECURRING:
            note_version(tables, edited)
    tables.hint(Topic.JOBS)
    return replace(edited)


def _is_current(job: Job, edit: JobEdit) -> bool:
    """Whether nobody fired what the edit decided about, or beyond what it says comes next."""
    if edit.firing is not None and (job.state.ended or not guards_hold(job, edit.firing)):
        return False
    if job.kind is not Kind.RECURRING or edit.next_at is None:
        return True
    return edit.next_at > max(job.fired_through, edit.fired_through or 0)


def _edited(job: Job, edit: JobEdit, now: Instant) -> Job:
    state = job.state if edit.state is None else edit.state
    paused_at = None if state is not JobState.PAUSED else job.paused_at or now
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
        paused_at=paused_at,
    )


def _refuse_taken_key(tables: Tables, job: Job, edit: JobEdit) -> None:
    if edit.key is None:
        return
    holder = tables.holder(job.lane.namespace, edit.key)
    if holder is not None and holder != job.id:
        raise KeyTaken(edit.key, str(holder))


def _move_key(tables: Tables, before: Job, edited: Job) -> None:
    namespace = edited.lane.namespace
    if before.key != edited.key or edited.state.ended:
        tables.free_key(namespace, before.key, edited.id)
    if edited.key is not None and not edited.state.ended:
        tables.uniques.setdefault((namespace, edited.key), edited.id)


# --- cancel, delete


def cancel(tables: Tables, ids: Sequence[UUID], *, delete: bool, now: Instant) -> list[CancelOutcome]:
    unknown = [one for one in ids if not _is_known(tables, one)]
    if unknown:
        raise NotFound(f"no job or run {unknown[0]}")
    return [_cancel_one(tables, one, delete=delete, now=now) for one in ids]


def _is_known(tables: Tables, identity: UUID) -> bool:
    return identity in tables.jobs or identity in tables.standing or tables.run(identity) is not None


def _cancel_one(tables: Tables, identity: UUID, *, delete: bool, now: Instant) -> CancelOutcome:
    if identity not in tables.jobs and identity not in tables.standing:
        run = tables.run(identity)
        if run is None:  # deleted by an earlier id of this batch
            return CancelOutcome(identity, job_changed=False, ended=(), asked=())
        return _cancel_runs(tables, run.job_id, [run], now, job_changed=False)
    runs = tables.live_runs(identity)
    changed, record = _cancel_row(tables, identity, now)
    outcome = _cancel_runs(tables, identity, runs, now, job_changed=changed)
    if record is not None:
        outcome = outcome._replace(ended=(record, *outcome.ended))
    if delete:
        _forget(tables, identity)
        outcome = outcome._replace(job_changed=True)
    return outcome


def _cancel_row(tables: Tables, job_id: UUID, now: Instant) -> tuple[bool, UUID | None]:
    job = tables.jobs.get(job_id)
    if job is None or job.state.ended:
        return False, None
    tables.hint(Topic.JOBS)
    if job.kind is Kind.RECURRING:
        cancelled = replace(job, state=JobState.CANCELLED, next_at=None, scheduled_at=None)
        tables.put_job(replace(cancelled, version=job.version + 1, updated_at=now, paused_at=None))
        tables.free_key(job.lane.namespace, job.key, job.id)
        return True, None
    tables.drop_job(job_id)
    nominal = job.created_at if job.next_at is None else job.next_at
    record = ended_record(job, nominal, job.scheduled_at or nominal, State.CANCELLED, None, now)
    tables.add_ended(record)
    return True, record.id


def _cancel_runs(
    tables: Tables, job_id: UUID, runs: Sequence[Run], now: Instant, *, job_changed: bool
) -> CancelOutcome:
    ended = tuple(run.id for run in runs if cancel_run(tables, run, now))
    asked = tuple(run.id for run in runs if not run.state.ended)
    return CancelOutcome(job_id, job_changed, ended, asked)


def _forget(tables: Tables, job_id: UUID) -> None:
    job = tables.drop_job(job_id)
    tables.versions.pop(job_id, None)
    if job is not None:
        tables.free_key(job.lane.namespace, job.key, job_id)
    run_id = tables.standing.pop(job_id, None)
    run = None if run_id is None else tables.run(run_id)
    if run is not None:
        run.stands_for_job = False
        tables.free_key(run.lane.namespace, run.key, job_id)


# --- runs beside the schedule


def add_runs(
    tables: Tables, runs: Sequence[NewRun], *, respect_overlap: bool, redeem_dead_letters: bool, now: Instant
) -> list[Run]:
    """Checks all of them before it makes the first."""
    seen: set[UUID] = set()
    redeemed: set[UUID] = set()
    for new in runs:
        if new.id in seen or tables.run(new.id) is not None:
            raise Conflict(f"run {new.id} exists already")
        seen.add(new.id)
        _source_of(tables, new)
        if redeem_dead_letters:
            _refuse_redeemed(tables, new, redeemed)
        if respect_overlap and _overlap(tables, new) is OverlapVerdict.SKIP:
            raise Conflict(
                f"job {new.job_id} has a run that has not ended, and its overlap rule takes no other one now"
            )
    made = [_add_run(tables, new, respect_overlap=respect_overlap, now=now) for new in runs]
    for run_id in redeemed:
        del tables.dead_letters[run_id]
    return made


def _refuse_redeemed(tables: Tables, new: NewRun, redeemed: set[UUID]) -> None:
    if new.replaces is None or new.replaces not in tables.dead_letters or new.replaces in redeemed:
        raise Conflict(f"run {new.replaces} is no dead letter any more: it was replayed or discarded")
    redeemed.add(new.replaces)


def _source_of(tables: Tables, new: NewRun) -> Job | Run:
    """What the new run takes its lane, priority, payload and document from."""
    if new.replaces is not None:
        replaced = tables.run(new.replaces)
        if replaced is None:
            raise NotFound(f"no run {new.replaces}")
        return new.over(replaced)
    job = tables.jobs.get(new.job_id)
    if job is not None:
        if job.state is JobState.CANCELLED:
            raise Conflict(f"job {new.job_id} is cancelled")
        return new.over(job)
    standing = tables.standing.get(new.job_id)
    run = None if standing is None else tables.run(standing)
    if run is None:
        raise NotFound(f"no job {new.job_id}")
    return new.over(run)


def _overlap(tables: Tables, new: NewRun) -> OverlapVerdict:
    return weigh_overlap(tables, new.job_id, _source_of(tables, new).document, catch_up=new.catch_up)


def _add_run(tables: Tables, new: NewRun, *, respect_overlap: bool, now: Instant) -> Run:
    verdict = _overlap(tables, new) if respect_overlap else OverlapVerdict.START
    source = _source_of(tables, new)
    job = tables.jobs.get(new.job_id)
    is_its_run = job is not None and job.kind is not Kind.RECURRING and new.replaces is None
    document = source.document
    scheduled_at = now if new.scheduled_at is None else new.scheduled_at
    run = Run(
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
    if is_its_run:
        tables.drop_job(new.job_id)
        tables.hint(Topic.JOBS)
    start_or_hold(tables, run, verdict, now)
    return run


# --- single runs


def retry_now(tables: Tables, run_id: UUID, now: Instant) -> bool:
    run = tables.runs.get(run_id)
    if run is None or run.state is not State.RETRYING:
        return False
    run.ready_at = now
    tables.move(run, Event.DUE, now)
    return True


def resolve(tables: Tables, run_id: UUID, state: int, note: str | None, now: Instant) -> bool:
    event = EVENT_OF_RESOLUTION[State(state)]
    run = tables.runs.get(run_id)
    if run is None or run.state is not State.UNKNOWN:
        return False
    run.reason = note or run.reason
    tables.move(run, event, now)
    return True


def purge_queue(tables: Tables, name: str, namespace: str, now: Instant) -> int:
    """Runs that the first endings release into the queue are purged too: they were held in it."""
    waiting = (State.QUEUED, State.HELD, State.RETRYING)
    found = [run for run in tables.runs.values() if (run.lane.namespace, run.lane.queue) == (namespace, name)]
    return sum(cancel_run(tables, run, now) for run in found if run.state in waiting)
