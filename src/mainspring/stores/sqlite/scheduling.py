"""Due occurrences become runs or records that say why there is none; what waits is let on or ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.ids import occurrence_id
from mainspring.core.model import DueOccurrence, Firing, Instant, Job, JobState, Kind, Origin, Run
from mainspring.core.overlap import OverlapVerdict, decide_overlap
from mainspring.core.policy import policy_of
from mainspring.core.states import State
from mainspring.ports.store import Fired, Topic
from mainspring.stores.sqlite.ending import OVERLAP, bury, cancel_runs, live_of_job
from mainspring.stores.sqlite.rows import raw_of, read_jobs
from mainspring.stores.sqlite.session import Session, packed, positions

DUE_STATES = (JobState.SCHEDULED, JobState.ACTIVE)


def due_jobs(session: Session, shards: Sequence[int] | None, until: Instant, limit: int) -> list[Job]:
    if shards is None:
        return read_jobs(session, session.run("due_jobs", (until, limit)))
    wanted = json.dumps([f"{shard:02X}" for shard in shards])
    return read_jobs(session, session.run("due_of_shards", (until, limit, wanted)))


def coming_jobs(
    session: Session, shards: Sequence[int] | None, after: tuple[Instant, UUID] | None, until: Instant, limit: int
) -> list[Job]:
    since, last = (0, b"") if after is None else (after[0], after[1].bytes)
    if shards is None:
        return read_jobs(session, session.run("coming_jobs", (since, until, limit, last)))
    wanted = json.dumps([f"{shard:02X}" for shard in shards])
    return read_jobs(session, session.run("coming_of_shards", (since, until, limit, last, wanted)))


# --- firing


def fire(session: Session, firings: Sequence[Firing], now: Instant | None) -> list[Fired]:
    """Each firing wholly or not at all. Plain one-time firings wait until the end and then take one statement."""
    instant = session.now(now)
    ids = packed(firing.job_id for firing in firings)
    jobs = {job.id: job for job in read_jobs(session, session.run("jobs_to_fire", (ids, positions(len(firings)))))}
    plain: list[tuple[Job, DueOccurrence]] = []
    answers: list[Fired] = []
    for firing in firings:
        job = jobs.get(firing.job_id)
        if job is None or job.state not in DUE_STATES or not guards_hold(job, firing):
            answers.append(Fired(firing.job_id, applied=False))
        elif _is_plain(job, firing):
            plain.append((jobs.pop(job.id), firing.runs[0]))
            run_id = occurrence_id(job.id, firing.runs[0].nominal)
            answers.append(Fired(job.id, applied=True, runs=(run_id,)))
        else:
            answers.append(apply_firing(session, job, firing, instant))
            if job.kind is Kind.RECURRING:
                jobs[job.id] = moved_on(job, firing)
            else:
                del jobs[job.id]
    _fire_plain(session, plain, instant)
    return answers


def guards_hold(job: Job, firing: Firing) -> bool:
    """The row of a one-time job is its own guard: it leaves when it fires."""
    if job.version != firing.version:
        return False
    if job.kind is not Kind.RECURRING:
        return True
    return all(nominal > job.fired_through for nominal in _nominals(firing))


def _nominals(firing: Firing) -> list[Instant]:
    return [due.nominal for due in firing.runs] + [skip.nominal for skip in firing.skips]


def _is_plain(job: Job, firing: Firing) -> bool:
    return (
        job.kind is not Kind.RECURRING
        and len(firing.runs) == 1
        and not firing.skips
        and not firing.runs[0].catch_up
        and (job.expires_at is not None or policy_of(job.document).expires_in is None)
    )


def _fire_plain(session: Session, plain: Sequence[tuple[Job, DueOccurrence]], now: Instant) -> None:
    if not plain:
        return
    jobs = packed(job.id for job, _ in plain)
    runs = packed(occurrence_id(job.id, due.nominal) for job, due in plain)
    session.run("fire_one_time", (jobs, runs, json.dumps([due.scheduled_at for _, due in plain]), now))
    session.run("drop_jobs_by_id", (jobs, positions(len(plain))))
    for queue in {job.lane.queue for job, _ in plain}:
        session.hint(Topic.READY, queue)


def apply_firing(session: Session, job: Job, firing: Firing, now: Instant) -> Fired:
    """Its guards were found to hold in this transaction."""
    recurring = job.kind is Kind.RECURRING
    if not recurring and (firing.runs or firing.skips):
        session.run("drop_job", (job.id.bytes,))
    for nominal, scheduled_at, reason, count in firing.skips:
        add_record(session, job, nominal, scheduled_at, State.SKIPPED, reason, now, count=count)
    made = [run for due in firing.runs if (run := _fire_one(session, job, due, now)) is not None]
    if recurring:
        _move_on(session, moved_on(job, firing), len(made))
        if firing.next_at is None and job.key is not None:
            session.run("free_key", (job.lane.namespace, job.key, job.id.bytes))
    skipped = len(firing.skips) + len(firing.runs) - len(made)
    return Fired(job.id, applied=True, runs=tuple(made), skipped=skipped)


def moved_on(job: Job, firing: Firing) -> Job:
    return replace(
        job,
        state=job.state if firing.next_at is not None else JobState.FINISHED,
        next_at=firing.next_at,
        scheduled_at=firing.next_at if firing.next_scheduled_at is None else firing.next_scheduled_at,
        fired_through=max(job.fired_through, firing.fired_through, *_nominals(firing)),
    )


def _move_on(session: Session, job: Job, made: int) -> None:
    values = (job.id.bytes, int(job.state), job.next_at, job.scheduled_at, job.fired_through, made)
    session.run("move_on", values)


def _fire_one(session: Session, job: Job, due: DueOccurrence, now: Instant) -> UUID | None:
    verdict = weigh_overlap(session, job.id, job.document, catch_up=due.catch_up)
    if verdict is OverlapVerdict.SKIP:
        add_record(session, job, due.nominal, due.scheduled_at, State.SKIPPED, OVERLAP, now)
        return None
    run = _run_of(job, due, now)
    start_or_hold(session, run, verdict, now)
    return run.id


def weigh_overlap(session: Session, job_id: UUID, document: str | None, *, catch_up: bool) -> OverlapVerdict:
    live = live_of_job(session, job_id)
    held = sum(run.waits_for_overlap for run in live)
    return decide_overlap(policy_of(document).overlap, live=len(live), held=held, catch_up=catch_up)


def start_or_hold(session: Session, run: Run, verdict: OverlapVerdict, now: Instant) -> None:
    """Adds the run queued, or held until those before it have ended."""
    if verdict is OverlapVerdict.REPLACE:
        cancel_runs(session, live_of_job(session, run.job_id), now)
    waits = verdict in (OverlapVerdict.HOLD, OverlapVerdict.REPLACE)
    if waits and live_of_job(session, run.job_id):
        run.state = State.HELD
        run.reason = OVERLAP
    _add_run(session, run)


def _add_run(session: Session, run: Run) -> None:
    session.run(
        "add_runs",
        (
            run.id.bytes,
            run.job_id.bytes,
            session.lanes.intern(session, run.lane),
            int(run.kind),
            int(run.state),
            run.priority,
            run.ready_at,
            run.scheduled_at,
            run.created_at,
            run.expires_at,
            int(run.catch_up),
            int(run.stands_for_job),
            raw_of(run.replaces),
            str(run.origin),
            run.reason,
            run.key,
            run.created_by,
            run.document,
            run.payload,
        ),
    )
    if run.state is State.QUEUED:
        session.hint(Topic.READY, run.lane.queue)


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


def add_record(
    session: Session,
    job: Job,
    nominal: Instant,
    scheduled_at: Instant,
    state: State,
    reason: str | None,
    now: Instant,
    *,
    count: int = 1,
) -> UUID:
    """The record of an occurrence, or of several, that never became runs."""
    identity = occurrence_id(job.id, nominal)
    lane = session.lanes.intern(session, job.lane)
    one_time = job.kind is not Kind.RECURRING
    key = one_time_key(job)
    session.run(
        "add_record",
        (
            identity.bytes,
            job.id.bytes,
            lane,
            int(job.kind),
            int(state),
            job.priority,
            scheduled_at,
            job.created_at,
            now,
            count,
            int(one_time),
            reason,
            key,
            job.created_by,
            job.document,
            job.payload,
        ),
    )
    if key is not None:
        session.run("free_key", (job.lane.namespace, key, job.id.bytes))
    return identity


def one_time_key(job: Job) -> str | None:
    """A recurring job keeps its key itself."""
    return None if job.kind is Kind.RECURRING else job.key


def expiry_of(document: str | None, scheduled_at: Instant, accepted_at: Instant) -> Instant | None:
    """`expires_in` counts from scheduled_at, or from acceptance where that was later."""
    span = policy_of(document).expires_in
    return None if span is None else max(scheduled_at, accepted_at) + span


# --- what waits


def promote(session: Session, limit: int, now: Instant | None) -> int:
    lanes = session.run("promote", (session.now(now), limit)).fetchall()
    for (lane,) in set(lanes):
        session.ready(lane)
    return len(lanes)


def nothing_to_promote(session: Session, now: Instant | None) -> int | None:
    wake = session.row("wake_for_retry")
    return None if wake is not None and wake[0] <= session.now(now) else 0


def expire(session: Session, limit: int, now: Instant | None) -> int:
    instant = session.now(now)
    numbers = [number for (number,) in session.run("expired", (instant, limit)).fetchall()]
    session.run("mark_expired", (json.dumps(numbers),))
    bury(session, numbers, instant)
    return len(numbers)


def nothing_to_expire(session: Session, now: Instant | None) -> int | None:
    wake = session.row("wake_for_expiry")
    return None if wake is not None and wake[0] <= session.now(now) else 0


def next_wake(session: Session) -> Instant | None:
    ((wake,),) = session.run("next_wake").fetchall()
    return None if wake is None else int(wake)
