"""The small tables: queues, idempotency keys, logs, numbers; and what is thrown away in time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.model import DAY, HOUR, SECOND, Instant, JobState, Lane, LogLine, QueueInfo, Stats
from mainspring.core.states import State
from mainspring.ports.store import IdempotentAnswer, Topic
from mainspring.stores.sqlite.session import Session

IDEMPOTENCY_KEPT = DAY
IN_FLIGHT_MAX = 60 * SECOND
DEAD_LETTERS_KEPT = 30 * DAY
LOST_WORKERS_KEPT = HOUR
SILENT_SCHEDULERS_KEPT = DAY
CHUNK = 10_000
ABOVE_ALL_PRIORITIES = 1 << 30

# --- queues


def queues(session: Session, namespace: str) -> list[QueueInfo]:
    return _queues(session, namespace, _live_counts(session, namespace))


def queue(session: Session, name: str, namespace: str) -> QueueInfo:
    return next(info for info in queues(session, namespace) if info.name == name)


def pause_queue(session: Session, name: str, namespace: str, *, paused: bool) -> QueueInfo:
    session.run("set_paused", (namespace, name, int(paused)))
    if not paused:
        session.hint(Topic.READY, name)
    return queue(session, name, namespace)


def set_queue_limits(session: Session, name: str, limits: str | None, namespace: str) -> QueueInfo:
    session.run("set_limits", (namespace, name, limits))
    return queue(session, name, namespace)


def _queues(session: Session, namespace: str, counts: Counter[tuple[str, State]]) -> list[QueueInfo]:
    infos = {lane.queue: QueueInfo(lane.queue) for lane in session.lanes.all(session) if lane.namespace == namespace}
    for name, paused, limits in session.run("queues", (namespace,)):
        infos[name] = QueueInfo(name, paused=bool(paused), limits=limits)
    return [
        replace(
            infos[name],
            queued=counts[name, State.QUEUED],
            running=counts[name, State.RUNNING] + counts[name, State.PARKED],
            held=counts[name, State.HELD],
        )
        for name in sorted(infos)
    ]


def _live_counts(session: Session, namespace: str) -> Counter[tuple[str, State]]:
    """How many live runs by queue and state; queued without anybody who could do it counts as held."""
    session.lanes.all(session)
    counts: Counter[tuple[str, State]] = Counter()
    rows = [(lane, State.QUEUED, count) for lane, count in session.run("count_queued")]
    rows += [(lane, State.RUNNING, count) for lane, count in session.run("count_running")]
    rows += [(lane, State(state), count) for lane, state, count in session.run("count_aside")]
    for number, state, count in rows:
        lane = session.lanes.lane(session, number)
        if lane.namespace == namespace:
            counts[lane.queue, _shown(session, lane, state)] += count
    return counts


def _shown(session: Session, lane: Lane, state: State) -> State:
    if state is State.QUEUED and not session.is_known(lane.namespace, lane.task):
        return State.HELD
    return state


# --- idempotency


def begin_idempotent(
    session: Session, key: str, body_hash: bytes, namespace: str, now: Instant | None
) -> IdempotentAnswer:
    instant = session.now(now)
    found = session.run("idempotent_row", (namespace, key)).fetchall()
    if not found or instant - found[0][1] >= IDEMPOTENCY_KEPT:
        session.run("begin_idempotent", (namespace, key, body_hash, instant))
        return IdempotentAnswer(mine=True, created_at=instant)
    ((known_hash, created_at, begun_at, status, body),) = found
    if known_hash != body_hash:
        return IdempotentAnswer(mine=False, created_at=created_at, same_body=False)
    if status is not None:
        return IdempotentAnswer(mine=False, created_at=created_at, status=status, body=body)
    if instant - begun_at > IN_FLIGHT_MAX:
        session.run("take_over_key", (namespace, key, instant))
        return IdempotentAnswer(mine=True, created_at=created_at)
    return IdempotentAnswer(mine=False, created_at=created_at)


def end_idempotent(session: Session, key: str, status: int, body: bytes, namespace: str) -> None:
    session.run("end_idempotent", (namespace, key, status, body))


def forget_idempotent(session: Session, key: str, namespace: str) -> None:
    session.run("forget_idempotent", (namespace, key))


# --- logs


def append_logs(session: Session, lines: Sequence[LogLine]) -> None:
    rows = [(line.run_id.bytes, line.attempt, line.at, line.level, line.message, line.fields) for line in lines]
    session.many("append_logs", rows)


def logs(session: Session, run_id: UUID, after: int, limit: int) -> list[tuple[int, LogLine]]:
    rows = session.run("logs", (run_id.bytes, after, limit))
    return [
        (number, LogLine(run_id, attempt, at, level, message, fields))
        for number, attempt, at, level, message, fields in rows
    ]


# --- numbers


def stats(session: Session, namespace: str) -> Stats:
    counts = _live_counts(session, namespace)
    by_status: Counter[str] = Counter()
    for (_queue, state), count in counts.items():
        by_status[state.word] += count
    for lane, state, count in session.run("count_jobs"):
        if session.lanes.lane(session, lane).namespace == namespace:
            by_status[JobState(state).word] += count
    lanes = [identity for lane, identity in session.lanes.all(session).items() if lane.namespace == namespace]
    listed = None if len(lanes) == len(session.lanes.all(session)) else json.dumps(lanes)
    next_fire = session.row("next_fire", (listed,))
    return Stats(
        by_status=dict(by_status),
        queues=tuple(_queues(session, namespace, counts)),
        workers=_number(session, "count_workers"),
        schedulers=_number(session, "count_schedulers"),
        oldest_ready_at=_oldest_ready(session, lanes),
        next_fire_at=None if next_fire is None else next_fire[0],
        dead_letters=_number(session, "count_dead_letters", listed),
    )


def _number(session: Session, name: str, *values: str | None) -> int:
    row = session.row(name, values)
    return 0 if row is None else row[0]


def _oldest_ready(session: Session, lanes: Sequence[int]) -> Instant | None:
    """One seek per lane and priority in use, whatever the backlog."""
    oldest: Instant | None = None
    for number in lanes:
        lane = session.lanes.lane(session, number)
        if not session.is_known(lane.namespace, lane.task):
            continue
        below = ABOVE_ALL_PRIORITIES
        while (head := session.row("head_of_priority", (number, below))) is not None:
            below, ready_at = head
            oldest = ready_at if oldest is None else min(oldest, ready_at)
    return oldest


# --- upkeep


def upkeep(session: Session, history_days: int, log_days: int, now: Instant | None) -> dict[str, int]:
    """One bounded bite, so that no other writer waits long; who calls it regularly gets through."""
    instant = session.now(now)
    dead_letters = session.run("drop_dead_letters", (instant - DEAD_LETTERS_KEPT,)).rowcount
    session.run("drop_silent_schedulers", (instant - SILENT_SCHEDULERS_KEPT,))
    return {
        "history": session.run("drop_history", (instant - history_days * DAY, CHUNK)).rowcount,
        "logs": session.run("drop_logs", (instant - log_days * DAY, CHUNK)).rowcount,
        "idempotency": session.run("drop_answers", (instant - IDEMPOTENCY_KEPT,)).rowcount,
        "dead_letters": dead_letters,
        "workers": session.run("drop_lost_workers", (instant - LOST_WORKERS_KEPT,)).rowcount,
    }
