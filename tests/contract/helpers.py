"""What the tests of the contract begin with, by name. Time is what they say it is; nothing waits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from uuid import UUID

from mainspring.core.ids import occurrence_id, uuid7
from mainspring.core.model import (
    HOUR,
    MINUTE,
    SECOND,
    Claimed,
    DueOccurrence,
    Duration,
    Ending,
    Firing,
    Instant,
    Job,
    JobView,
    Kind,
    Lane,
    NewJob,
    Run,
    SkippedOccurrence,
    TaskInfo,
    Verdict,
    WorkerInfo,
)
from mainspring.core.states import Outcome, State
from mainspring.ports.store import CancelOutcome, NewRun, Store

T0: Instant = 1_797_840_000_000_000  # 2026-12-21T08:00:00Z
TASK = "task"

_numbers = count(1)


def new_id(instant: Instant = T0) -> UUID:
    """Later ones are greater, also within a millisecond."""
    return uuid7(instant, next(_numbers).to_bytes(10, "big"))


def lane(task: str = TASK, queue: str = "default", namespace: str = "default", region: str = "") -> Lane:
    return Lane(namespace, queue, task, region)


def document(**fields: object) -> str | None:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")) if fields else None


# --- jobs


def immediate_job(
    *,
    task: str = TASK,
    queue: str = "default",
    priority: int = 50,
    payload: bytes = b"{}",
    key: str | None = None,
    expires_at: Instant | None = None,
    scheduled_at: Instant | None = None,
    at: Instant = T0,
    namespace: str = "default",
    region: str = "",
    reason: str | None = None,
    created_by: str | None = None,
    **fields: object,
) -> NewJob:
    return NewJob(
        id=new_id(at),
        lane=lane(task, queue, namespace, region),
        priority=priority,
        payload=payload,
        document=document(**fields),
        key=key,
        expires_at=expires_at,
        scheduled_at=scheduled_at,
        reason=reason,
        created_by=created_by,
    )


def delayed_job(
    due: Instant,
    *,
    task: str = TASK,
    queue: str = "default",
    key: str | None = None,
    at: Instant = T0,
    **fields: object,
) -> NewJob:
    return NewJob(
        id=new_id(at),
        lane=lane(task, queue),
        kind=Kind.DELAYED,
        document=document(**fields),
        key=key,
        next_at=due,
        scheduled_at=due,
    )


def recurring_job(
    *,
    every: Duration = MINUTE,
    first: Instant | None = None,
    task: str = TASK,
    queue: str = "default",
    key: str | None = None,
    at: Instant = T0,
    **fields: object,
) -> NewJob:
    """Every minute from a minute after T0 on, unless told otherwise."""
    due = at + every if first is None else first
    return NewJob(
        id=new_id(at),
        lane=lane(task, queue),
        kind=Kind.RECURRING,
        document=document(every=every // SECOND, **fields),
        key=key,
        next_at=due,
        scheduled_at=due,
    )


async def given_job(store: Store, new: NewJob, *, now: Instant = T0) -> UUID:
    [answer] = await store.submit([new], now=now)
    assert answer.id == new.id
    return new.id


async def given_recurring_job(store: Store, new: NewJob | None = None, *, now: Instant = T0) -> Job:
    job_id = await given_job(store, new or recurring_job(at=now), now=now)
    return (await view_of(store, job_id)).job


async def view_of(store: Store, job_id: UUID) -> JobView:
    [view] = await store.jobs([job_id])
    assert view is not None
    return view


async def row_of(store: Store, job_id: UUID) -> Job:
    return (await view_of(store, job_id)).job


# --- workers and runs


async def given_worker(
    store: Store,
    *,
    tasks: Sequence[str] = (TASK,),
    now: Instant = T0,
    lease: Duration = 30 * SECOND,
    keeper: UUID | None = None,
    namespace: str = "default",
) -> UUID:
    worker = new_id(now)
    info = worker_info(worker, lease=lease, keeper=keeper, namespace=namespace)
    assert await store.register(info, [TaskInfo(task) for task in tasks], now=now) == now
    return worker


def worker_info(
    worker: UUID, *, lease: Duration = 30 * SECOND, keeper: UUID | None = None, namespace: str = "default"
) -> WorkerInfo:
    return WorkerInfo(
        id=worker,
        host="host",
        pid=4711,
        queues=(),
        slots=10,
        version="0.1.0",
        lease=lease,
        namespace=namespace,
        keeper=keeper,
    )


async def claim(
    store: Store,
    worker: UUID,
    *,
    tasks: Sequence[str] = (TASK,),
    queues: Sequence[str] | None = None,
    limit: int = 100,
    suspects: bool = True,
    bytes_max: int = 8 * 1024 * 1024,
    namespace: str = "default",
    now: Instant = T0,
) -> list[Claimed]:
    return await store.claim(
        worker,
        tasks=tasks,
        queues=queues,
        count=limit,
        suspects=suspects,
        bytes_max=bytes_max,
        namespace=namespace,
        now=now,
    )


async def claim_one(store: Store, worker: UUID, *, now: Instant = T0, suspects: bool = True) -> Claimed:
    [claimed] = await claim(store, worker, limit=1, now=now, suspects=suspects)
    return claimed


async def given_running_run(
    store: Store, worker: UUID | None = None, new: NewJob | None = None, *, now: Instant = T0
) -> tuple[UUID, Claimed]:
    """The worker and what it has claimed."""
    holder = worker or await given_worker(store, now=now)
    job = new or immediate_job(at=now)
    await given_job(store, job, now=now)
    claimed = await claim(store, holder, tasks=(job.lane.task,), now=now)
    assert job.id in [one.id for one in claimed]
    return holder, next(one for one in claimed if one.id == job.id)


async def given_retrying_run(store: Store, new: NewJob | None = None, *, wait: Duration = MINUTE) -> tuple[UUID, UUID]:
    """The worker that failed it, and the run."""
    worker, claimed = await given_running_run(store, None, new)
    await accept(store, worker, retrying(claimed, wait))
    return worker, claimed.id


async def given_unknown_run(store: Store, new: NewJob | None = None) -> tuple[UUID, UUID]:
    worker, claimed = await given_running_run(store, None, new)
    await accept(store, worker, in_doubt(claimed))
    return worker, claimed.id


async def given_failed_run(store: Store, new: NewJob | None = None, *, now: Instant = T0) -> tuple[UUID, UUID]:
    worker, claimed = await given_running_run(store, None, new, now=now)
    await accept(store, worker, failed(claimed), now=now)
    return worker, claimed.id


async def given_completed_run(store: Store, new: NewJob | None = None, *, now: Instant = T0) -> tuple[UUID, UUID]:
    worker, claimed = await given_running_run(store, None, new, now=now)
    await accept(store, worker, completed(claimed), now=now)
    return worker, claimed.id


async def given_run_held_for_overlap(store: Store, rule: str = "queue_one") -> tuple[UUID, Claimed, UUID]:
    """A worker, the run that it carries out, and the run of the same job that waits for it."""
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap=rule))
    await fire_at(store, job.id, T0 + MINUTE)
    running = await claim_one(store, worker, now=T0 + MINUTE)
    [held] = await fire_at(store, job.id, T0 + 2 * MINUTE)
    assert (await run_of(store, held)).state is State.HELD
    return worker, running, held


async def run_of(store: Store, run_id: UUID) -> Run:
    [run] = await store.runs([run_id])
    assert run is not None
    return run


async def state_of(store: Store, run_id: UUID) -> State:
    return State((await run_of(store, run_id)).state)


# --- endings


def completed(claimed: Claimed, result: bytes = b'"done"') -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.COMPLETED,
        Outcome.COMPLETED,
        result=result,
        spent=claimed.spent,
        deaths=claimed.deaths,
    )


def failed(claimed: Claimed, error: str = '{"type":"ValueError","message":"no","traceback":""}') -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.FAILED,
        Outcome.FAILED,
        error=error,
        spent=claimed.spent + 1,
        deaths=claimed.deaths,
    )


def retrying(claimed: Claimed, wait: Duration = MINUTE, attempts: str | None = None) -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.RETRYING,
        Outcome.FAILED,
        error='{"type":"ValueError","message":"no","traceback":""}',
        wait=wait,
        spent=claimed.spent + 1,
        deaths=claimed.deaths,
        attempts=attempts,
    )


def given_back(claimed: Claimed, *, started: bool) -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.QUEUED,
        Outcome.RELEASED,
        reason="shutdown" if started else None,
        spent=claimed.spent,
        deaths=claimed.deaths,
        started=started,
    )


def cancelled(claimed: Claimed) -> Ending:
    return Ending(
        claimed.id, claimed.fence, State.CANCELLED, Outcome.CANCELLED, spent=claimed.spent, deaths=claimed.deaths
    )


def in_doubt(claimed: Claimed) -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.UNKNOWN,
        Outcome.LOST,
        reason="shutdown",
        spent=claimed.spent + 1,
        deaths=claimed.deaths,
    )


async def accept(store: Store, worker: UUID, ending: Ending, *, now: Instant = T0) -> None:
    assert await store.finish(worker, [ending], now=now) == [Verdict.ACCEPTED]


# --- firing, cancelling, adding


def firing(
    job: Job,
    *nominals: Instant,
    skips: Sequence[SkippedOccurrence] = (),
    every: Duration = MINUTE,
    following: Instant | None = -1,
    catch_up: bool = False,
) -> Firing:
    """A firing of these instants; what follows is one period after the last, unless told (None: nothing)."""
    last = max([*nominals, *(skip.nominal for skip in skips)], default=job.fired_through)
    next_at = last + every if following == -1 else following
    if job.kind is not Kind.RECURRING:
        next_at = None
    return Firing(
        job_id=job.id,
        version=job.version,
        runs=tuple(DueOccurrence(nominal, nominal, catch_up) for nominal in nominals),
        skips=tuple(skips),
        fired_through=last,
        next_at=next_at,
        next_scheduled_at=next_at,
    )


async def fire_at(store: Store, job_id: UUID, *nominals: Instant, now: Instant | None = None) -> tuple[UUID, ...]:
    """Fires these instants, at the last of them unless told; the runs made."""
    job = await row_of(store, job_id)
    [fired] = await store.fire([firing(job, *nominals)], now=max(nominals) if now is None else now)
    assert fired.applied
    return fired.runs


async def cancel(store: Store, identity: UUID, *, delete: bool = False, now: Instant = T0) -> CancelOutcome:
    [outcome] = await store.cancel([identity], delete=delete, now=now)
    return outcome


async def add_run(
    store: Store,
    job_id: UUID,
    origin: str = "trigger",
    *,
    replaces: UUID | None = None,
    payload: bytes | None = None,
    respect_overlap: bool = False,
    redeem: bool = False,
    now: Instant = T0,
) -> Run:
    new = NewRun(new_id(now), job_id, origin, replaces=replaces, payload=payload)
    [run] = await store.add_runs([new], respect_overlap=respect_overlap, redeem_dead_letters=redeem, now=now)
    assert run.id == new.id
    return run


def occurrence(job_id: UUID, nominal: Instant) -> UUID:
    return occurrence_id(job_id, nominal)


LATER = T0 + HOUR
