"""Due occurrences become runs or records that say why there is none; what waits is let on or ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.ids import occurrence_id
from mainspring.core.model import (
    DueOccurrence,
    Firing,
    Instant,
    Job,
    JobState,
    Kind,
    Origin,
    Run,
    SkippedOccurrence,
)
from mainspring.core.overlap import OverlapVerdict, decide_overlap
from mainspring.core.policy import policy_of
from mainspring.core.states import Event, State
from mainspring.ports.store import Fired, Topic
from mainspring.stores.memory.tables import DUE_STATES, OVERLAP, Tables, held_for_overlap


def due_jobs(tables: Tables, shards: Sequence[int] | None, until: Instant, limit: int) -> list[Job]:
    wanted = None if shards is None else frozenset(shards)
    found: list[Job] = []
    for scheduled_at, number, job_id in tables.due:
        if scheduled_at > until or len(found) >= limit:
            break
        if wanted is None or number & 0xFF in wanted:
            found.append(replace(tables.jobs[job_id]))
    return found


def coming_jobs(
    tables: Tables, shards: Sequence[int] | None, after: tuple[Instant, UUID] | None, until: Instant, limit: int
) -> list[Job]:
    found = due_jobs(tables, shards, until, len(tables.jobs))
    return [replace(job, payload=b"") for job in found if after is None or (job.scheduled_at or 0, job.id) > after][
        :limit
    ]


def fire(tables: Tables, firing: Firing, now: Instant) -> Fired:
    """Nothing of it happens where a guard does not hold."""
    job = tables.jobs.get(firing.job_id)
    if job is None or job.state not in DUE_STATES or not guards_hold(job, firing):
        return Fired(firing.job_id, applied=False)
    return apply_firing(tables, job, firing, now)


def guards_hold(job: Job, firing: Firing) -> bool:
    """The row of a one-time job is its own guard: it leaves when it fires."""
    if job.version != firing.version:
        return False
    if job.kind is not Kind.RECURRING:
        return True
    return all(nominal > job.fired_through for nominal in _nominals(firing))


def _nominals(firing: Firing) -> list[Instant]:
    return [due.nominal for due in firing.runs] + [skip.nominal for skip in firing.skips]


def apply_firing(tables: Tables, job: Job, firing: Firing, now: Instant) -> Fired:
    if job.kind is Kind.RECURRING:
        tables.put_job(_moved_on(job, firing))
    elif firing.runs or firing.skips:
        tables.drop_job(job.id)
    for skip in firing.skips:
        tables.add_ended(skipped_run(job, skip, now))
    made = [_fire_one(tables, job, due, now) for due in firing.runs]
    runs = tuple(run.id for run in made if run.state is not State.SKIPPED)
    if job.kind is Kind.RECURRING:
        tables.jobs[job.id].runs_made += len(runs)
        if firing.next_at is None:
            tables.free_key(job.lane.namespace, job.key, job.id)
    return Fired(job.id, applied=True, runs=runs, skipped=len(firing.skips) + len(made) - len(runs))


def _moved_on(job: Job, firing: Firing) -> Job:
    return replace(
        job,
        state=job.state if firing.next_at is not None else JobState.FINISHED,
        next_at=firing.next_at,
        scheduled_at=firing.next_at if firing.next_scheduled_at is None else firing.next_scheduled_at,
        fired_through=max(job.fired_through, firing.fired_through, *_nominals(firing)),
    )


def _fire_one(tables: Tables, job: Job, due: DueOccurrence, now: Instant) -> Run:
    verdict = weigh_overlap(tables, job.id, job.document, catch_up=due.catch_up)
    if verdict is OverlapVerdict.SKIP:
        skip = SkippedOccurrence(due.nominal, due.scheduled_at, OVERLAP)
        run = skipped_run(job, skip, now)
        tables.add_ended(run)
        return run
    run = _run_of(job, due, now)
    start_or_hold(tables, run, verdict, now)
    return run


def weigh_overlap(tables: Tables, job_id: UUID, document: str | None, *, catch_up: bool) -> OverlapVerdict:
    live = tables.live_runs(job_id)
    held = sum(held_for_overlap(run) for run in live)
    return decide_overlap(policy_of(document).overlap, live=len(live), held=held, catch_up=catch_up)


def start_or_hold(tables: Tables, run: Run, verdict: OverlapVerdict, now: Instant) -> None:
    """Adds the run queued, or held until those before it have ended."""
    if verdict is OverlapVerdict.REPLACE:
        for other in tables.live_runs(run.job_id):
            cancel_run(tables, other, now)
    if verdict in (OverlapVerdict.HOLD, OverlapVerdict.REPLACE) and tables.live_of_job.get(run.job_id):
        run.state = State.HELD
        run.reason = OVERLAP
    tables.add_run(run)


def cancel_run(tables: Tables, run: Run, now: Instant) -> bool:
    """Ends it as cancelled, or asks its worker to; True where it has ended."""
    if run.state.ended:
        return False
    if run.state in (State.RUNNING, State.PARKED):
        if run.cancel_requested_at is None:
            run.cancel_requested_at = now
        if run.worker is not None:
            tables.hint(Topic.WORKER, str(run.worker))
        return False
    tables.move(run, Event.CANCEL, now)
    return True


def _run_of(job: Job, due: DueOccurrence, now: Instant) -> Run:
    return Run(
        id=occurrence_id(job.id, due.nominal),
        job_id=job.id,
        lane=job.lane,
        kind=job.kind,
        state=State.QUEUED,
        priority=job.priority,
        payload=job.payload,
        document=job.document,
        ready_at=max(now, due.scheduled_at),
        scheduled_at=due.scheduled_at,
        created_at=job.created_at,
        key=one_time_key(job),
        origin=Origin.SCHEDULE,
        expires_at=job.expires_at or expiry_of(job.document, due.scheduled_at, job.created_at),
        catch_up=due.catch_up,
        stands_for_job=job.kind is not Kind.RECURRING,
        created_by=job.created_by,
    )


def skipped_run(job: Job, skip: SkippedOccurrence, now: Instant) -> Run:
    """The record of an occurrence, or of several, that never became runs."""
    nominal, scheduled_at, reason, count = skip
    return ended_record(job, nominal, scheduled_at, State.SKIPPED, reason, now, count=count)


def ended_record(
    job: Job, nominal: Instant, scheduled_at: Instant, state: State, reason: str | None, now: Instant, *, count: int = 1
) -> Run:
    return Run(
        id=occurrence_id(job.id, nominal),
        job_id=job.id,
        lane=job.lane,
        kind=job.kind,
        state=state,
        priority=job.priority,
        payload=job.payload,
        document=job.document,
        ready_at=scheduled_at,
        scheduled_at=scheduled_at,
        created_at=job.created_at,
        reason=reason,
        key=one_time_key(job),
        origin=Origin.SCHEDULE,
        finished_at=now,
        count=count,
        stands_for_job=job.kind is not Kind.RECURRING,
        created_by=job.created_by,
    )


def one_time_key(job: Job) -> str | None:
    """A recurring job keeps its key itself."""
    return None if job.kind is Kind.RECURRING else job.key


def expiry_of(document: str | None, scheduled_at: Instant, accepted_at: Instant) -> Instant | None:
    """`expires_in` counts from scheduled_at, or from acceptance where that was later."""
    span = policy_of(document).expires_in
    return None if span is None else max(scheduled_at, accepted_at) + span


def promote(tables: Tables, limit: int, now: Instant) -> int:
    due = tables.due_retries(now, limit)
    for run in due:
        tables.move(run, Event.DUE, now)
    return len(due)


def expire(tables: Tables, limit: int, now: Instant) -> int:
    due = tables.due_expiries(now, limit)
    for run in due:
        run.reason = "expired"
        tables.move(run, Event.EXPIRE, now)
    return len(due)
