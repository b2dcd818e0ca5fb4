"""Who lives: workers and what is asked of them, those declared lost, what becomes of their runs; schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.core.decide import Tally
from mainspring.core.losses import Loss, LostAttempt, borne_until, lose
from mainspring.core.model import BeatAnswer, Duration, Evidence, Instant, TaskInfo, WorkerInfo
from mainspring.core.states import State
from mainspring.ports.store import Rescued, Topic
from mainspring.stores.sqlite.ending import bury
from mainspring.stores.sqlite.rows import UNIT, raw_of, read_workers, uuid_of
from mainspring.stores.sqlite.session import Session

# --- workers


def register(session: Session, worker: WorkerInfo, tasks: Sequence[TaskInfo], now: Instant | None) -> Instant:
    instant = session.now(now)
    session.run(
        "add_worker",
        (
            worker.id.bytes,
            worker.namespace,
            worker.host,
            worker.pid,
            UNIT.join(worker.queues),
            worker.slots,
            worker.version,
            worker.lease,
            raw_of(worker.keeper),
            instant,
        ),
    )
    for task in tasks:
        _open_lanes(session, worker.namespace, task, instant)
    return instant


def _open_lanes(session: Session, namespace: str, task: TaskInfo, now: Instant) -> None:
    is_new = not session.is_known(namespace, task.name)
    session.run("add_task", (namespace, task.name, task.signature, task.defaults, now))
    if is_new:
        for lane in session.lanes.all(session):
            if lane.namespace == namespace and lane.task == task.name:
                session.hint(Topic.READY, lane.queue)


def known_tasks(session: Session, names: Sequence[str] | None, namespace: str) -> list[TaskInfo]:
    rows = session.run("known_tasks", (namespace,))
    return [TaskInfo(name, signature, defaults) for name, signature, defaults in rows if names is None or name in names]


def beat(session: Session, workers: Sequence[UUID], now: Instant | None) -> list[BeatAnswer]:
    """Signs of life are locks of the operating system here: a beat only asks what is wanted of the worker."""
    instant = session.now(now)
    return [_beat_one(session, worker.bytes, instant) for worker in workers]


def _beat_one(session: Session, worker: bytes, now: Instant) -> BeatAnswer:
    found = session.row("beat", (worker,))
    if found is None:
        return BeatAnswer(known=False, now=now)
    asked = tuple((uuid_of(identity), fence) for identity, fence in session.run("cancels_of_worker", (worker,)))
    return BeatAnswer(known=True, drain=bool(found[0]), cancel=asked, now=now)


def drain(session: Session, worker: UUID) -> bool:
    known = session.run("start_drain", (worker.bytes,)).rowcount == 1
    if known:
        session.hint(Topic.WORKER, str(worker))
    return known


def deregister(session: Session, worker: UUID, now: Instant | None) -> None:
    """One that still holds runs stays as lost until they are rescued; a verdict that was there before stands."""
    session.run("drop_worker", (worker.bytes,))
    declare_lost(session, worker, Evidence.DEATH, beat=None, culprit=None, now=now)


def workers(session: Session, *, lost: bool) -> list[WorkerInfo]:
    listed = read_workers(session.run("workers"))
    return [info for info in listed if info.lost_at is None or (lost and info.running)]


# --- loss


def declare_lost(
    session: Session,
    worker: UUID,
    evidence: Evidence,
    *,
    beat: int | None,
    culprit: UUID | None,
    now: Instant | None,
) -> bool:
    values = (worker.bytes, session.now(now), evidence.value, raw_of(culprit), beat)
    lost = session.run("declare_lost", values).rowcount == 1
    if lost:
        session.hint(Topic.WORKER, str(worker))
    return lost


class LostRun(NamedTuple):
    number: int
    id: bytes
    lane: int
    document: str | None
    spent: int
    deaths: int
    attempt: int
    attempts: str | None
    started_at: Instant | None
    cancel_requested_at: Instant | None


def nothing_to_rescue(session: Session) -> list[Rescued] | None:
    return None if session.run("holders_gone").fetchall() else []


def rescue(session: Session, limit: int, random_value: float, now: Instant | None) -> list[Rescued]:
    instant = session.now(now)
    rescued: list[Rescued] = []
    ended: list[int] = []
    for holder, evidence, culprit, lost_at, lease in session.run("holders_gone").fetchall():
        held = [LostRun(*row) for row in session.run("held_by_worker", (holder,))]
        due = [run for run in held if instant >= borne_until(run.document, evidence, lost_at, lease)]
        for run in due[: limit - len(rescued)]:
            loss = lose(_lost_attempt(run, holder, evidence, culprit), random_value, instant)
            decision = loss.decision
            _apply(session, run, loss, instant)
            if decision.state.ended:
                ended.append(run.number)
            elif decision.state is State.QUEUED:
                session.ready(run.lane)
            reason = decision.reason or decision.outcome.value
            rescued.append(Rescued(uuid_of(run.id), uuid_of(holder), int(decision.state), reason))
        if len(rescued) >= limit:
            break
    bury(session, ended, instant)
    return rescued


def _lost_attempt(run: LostRun, holder: bytes, evidence: str | None, culprit: bytes | None) -> LostAttempt:
    return LostAttempt(
        run.attempt,
        uuid_of(holder),
        run.started_at,
        Tally(run.spent, run.deaths, run.cancel_requested_at is not None),
        run.document,
        run.attempts,
        evidence,
        culprit=culprit == run.id,
    )


def _apply(session: Session, run: LostRun, loss: Loss, now: Instant) -> None:
    decision, attempts, error = loss
    state, reason = int(decision.state), decision.reason
    ready_at = now + decision.wait if decision.state is State.RETRYING else None
    session.run(
        "lose_attempt",
        (run.number, state, decision.spent, decision.deaths, attempts, reason, ready_at, error),
    )


# --- schedulers


def scheduler_beat(
    session: Session, scheduler: UUID, host: str, silent_after: Duration, now: Instant | None
) -> list[UUID]:
    instant = session.now(now)
    session.run("scheduler_beat", (scheduler.bytes, host, instant))
    return [identity for identity, _, _ in schedulers(session, silent_after, instant)]


def schedulers(session: Session, silent_after: Duration, now: Instant | None) -> list[tuple[UUID, str, Instant]]:
    rows = session.run("schedulers", (session.now(now) - silent_after,))
    return [(uuid_of(identity), host, beat_at) for identity, host, beat_at in rows]


def scheduler_stop(session: Session, scheduler: UUID) -> None:
    session.run("scheduler_stop", (scheduler.bytes,))
