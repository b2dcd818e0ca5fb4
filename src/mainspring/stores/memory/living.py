"""Who lives: workers and their beats, those declared lost, what becomes of their runs; schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.decide import Tally
from mainspring.core.losses import LostAttempt, borne_until, lose
from mainspring.core.model import BeatAnswer, Duration, Evidence, Instant, Run, TaskInfo, WorkerInfo
from mainspring.core.states import Event, State
from mainspring.ports.store import Rescued, Topic
from mainspring.stores.memory.tables import Tables, WorkerRow
from mainspring.stores.memory.working import leave_worker

EVENT_OF_LOSS = {
    State.QUEUED: Event.LOSE,
    State.RETRYING: Event.RETRY,
    State.FAILED: Event.EXHAUST,
    State.UNKNOWN: Event.DOUBT,
    State.CANCELLED: Event.CANCEL,
}


# --- workers


def register(tables: Tables, worker: WorkerInfo, tasks: Sequence[TaskInfo], now: Instant) -> Instant:
    row = tables.workers.get(worker.id)
    if row is None:
        fresh = replace(worker, started_at=now, beat_at=now, beat=0, running=0, lost_at=None, evidence=None)
        tables.workers[worker.id] = WorkerRow(fresh)
    elif row.info.lost_at is None:
        kept = row.info
        row.info = replace(worker, started_at=kept.started_at, beat_at=now, beat=kept.beat + 1, draining=kept.draining)
    for task in tasks:
        _open_lanes(tables, worker.namespace, task)
    return now


def _open_lanes(tables: Tables, namespace: str, task: TaskInfo) -> None:
    is_new = (namespace, task.name) not in tables.tasks
    tables.tasks[namespace, task.name] = task
    if not is_new:
        return
    for (of_namespace, queue), lines in tables.lines.items():
        if of_namespace == namespace and task.name in lines:
            tables.hint(Topic.READY, queue)


def beat(
    tables: Tables, workers: Sequence[UUID], keeper: UUID | None, now: Instant, *, read_only: bool
) -> list[BeatAnswer]:
    return [_beat_one(tables, worker, keeper, now, read_only=read_only) for worker in workers]


def _beat_one(tables: Tables, worker: UUID, keeper: UUID | None, now: Instant, *, read_only: bool) -> BeatAnswer:
    row = tables.workers.get(worker)
    if row is None or row.info.lost_at is not None:
        return BeatAnswer(known=False, now=now)
    info = row.info
    if not read_only:
        info.beat += 1
        info.beat_at = now
        info.keeper = keeper or info.keeper
    held = [tables.runs[run_id] for run_id in tables.held_by.get(worker, ())]
    asked = tuple((run.id, run.fence) for run in held if run.cancel_requested_at is not None)
    return BeatAnswer(known=True, drain=info.draining, cancel=asked, now=now)


def drain(tables: Tables, worker: UUID) -> bool:
    row = tables.workers.get(worker)
    if row is None or row.info.lost_at is not None:
        return False
    row.info.draining = True
    tables.hint(Topic.WORKER, str(worker))
    return True


def deregister(tables: Tables, worker: UUID, now: Instant) -> None:
    """One that still holds runs stays as lost until they are rescued; a verdict that was there before stands."""
    if worker not in tables.held_by:
        tables.workers.pop(worker, None)
    else:
        declare_lost(tables, worker, Evidence.DEATH, beat=None, culprit=None, now=now)


def workers(tables: Tables, *, lost: bool) -> list[WorkerInfo]:
    listed = [_counted(tables, row.info) for row in tables.workers.values()]
    shown = [info for info in listed if info.lost_at is None or (lost and info.running)]
    return sorted(shown, key=lambda info: info.id.int)


def _counted(tables: Tables, info: WorkerInfo) -> WorkerInfo:
    return replace(info, running=len(tables.held_by.get(info.id, ())))


# --- loss


def declare_lost(
    tables: Tables, worker: UUID, evidence: Evidence, *, beat: int | None, culprit: UUID | None, now: Instant
) -> bool:
    row = tables.workers.get(worker)
    if row is None or row.info.lost_at is not None:
        return False
    if beat is not None and row.info.beat != beat:
        return False
    row.info.lost_at = now
    row.info.evidence = evidence.value
    row.culprit = culprit
    tables.hint(Topic.WORKER, str(worker))
    return True


def rescue(tables: Tables, limit: int, random_value: float, now: Instant) -> list[Rescued]:
    held = [run for worker in list(tables.held_by) if _is_lost(tables, worker) for run in _held(tables, worker)]
    lost = [run for run in held if not _is_borne(tables, run, now)]
    return [_rescue_one(tables, run, random_value, now) for run in lost[:limit]]


def _is_lost(tables: Tables, worker: UUID) -> bool:
    row = tables.workers.get(worker)
    return row is None or row.info.lost_at is not None


def _is_borne(tables: Tables, run: Run, now: Instant) -> bool:
    row = tables.workers.get(run.worker) if run.worker is not None else None
    if row is None or row.info.lost_at is None:
        return False
    return now < borne_until(run.document, row.info.evidence, row.info.lost_at, row.info.lease)


def _held(tables: Tables, worker: UUID) -> list[Run]:
    return [tables.runs[run_id] for run_id in tables.held_by[worker]]


def _rescue_one(tables: Tables, run: Run, random_value: float, now: Instant) -> Rescued:
    worker = run.worker
    assert worker is not None
    decision, run.attempts, run.error = lose(_lost_attempt(tables, run, worker), random_value, now)
    run.spent = decision.spent
    run.deaths = decision.deaths
    run.reason = decision.reason or run.reason
    if decision.state is State.RETRYING:
        run.ready_at = now + decision.wait
    leave_worker(tables, run, EVENT_OF_LOSS[decision.state], now)
    return Rescued(run.id, worker, int(decision.state), decision.reason or decision.outcome.value)


def _lost_attempt(tables: Tables, run: Run, worker: UUID) -> LostAttempt:
    row = tables.workers.get(worker)
    return LostAttempt(
        run.attempt,
        worker,
        run.started_at,
        Tally(run.spent, run.deaths, run.cancel_requested_at is not None),
        run.document,
        run.attempts,
        None if row is None else row.info.evidence,
        culprit=row is not None and row.culprit == run.id,
    )


# --- schedulers


def scheduler_beat(tables: Tables, scheduler: UUID, host: str, silent_after: Duration, now: Instant) -> list[UUID]:
    tables.schedulers[scheduler] = (host, now)
    return [identity for identity, _, _ in schedulers(tables, silent_after, now)]


def schedulers(tables: Tables, silent_after: Duration, now: Instant) -> list[tuple[UUID, str, Instant]]:
    alive = [(one, host, at) for one, (host, at) in tables.schedulers.items() if at >= now - silent_after]
    return sorted(alive, key=lambda row: row[0].int)
