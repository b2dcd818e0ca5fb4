"""The small tables: queues, idempotency keys, logs, numbers; and what is thrown away in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from mainspring.core.model import DAY, HOUR, SECOND, Instant, LogLine, QueueInfo, Run, Stats
from mainspring.core.states import State
from mainspring.ports.store import IdempotentAnswer, Topic
from mainspring.stores.memory.tables import IdempotentRow, Tables

IDEMPOTENCY_KEPT = DAY
IN_FLIGHT_MAX = 60 * SECOND
DEAD_LETTERS_KEPT = 30 * DAY
LOST_WORKERS_KEPT = HOUR

# --- queues


def queues(tables: Tables, namespace: str) -> list[QueueInfo]:
    infos = {name: QueueInfo(name) for name in tables.queue_names.get(namespace, ())}
    for (of_namespace, name), row in tables.queue_rows.items():
        if of_namespace == namespace:
            infos[name] = replace(row)
    for run in tables.runs.values():
        if run.lane.namespace == namespace:
            _count(infos[run.lane.queue], tables, run)
    return [infos[name] for name in sorted(infos)]


def _count(info: QueueInfo, tables: Tables, run: Run) -> None:
    if run.state in (State.RUNNING, State.PARKED):
        info.running += 1
    elif run.state is State.HELD or (run.state is State.QUEUED and not tables.known(run)):
        info.held += 1
    elif run.state is State.QUEUED:
        info.queued += 1


def queue(tables: Tables, name: str, namespace: str) -> QueueInfo:
    return next(info for info in queues(tables, namespace) if info.name == name)


def set_paused(tables: Tables, name: str, namespace: str, *, paused: bool) -> None:
    _row(tables, name, namespace).paused = paused
    if not paused:
        tables.hint(Topic.READY, name)


def set_limits(tables: Tables, name: str, namespace: str, limits: str | None) -> None:
    _row(tables, name, namespace).limits = limits


def _row(tables: Tables, name: str, namespace: str) -> QueueInfo:
    tables.note_queue(namespace, name)
    return tables.queue_rows.setdefault((namespace, name), QueueInfo(name))


# --- idempotency


def begin_idempotent(tables: Tables, key: str, body_hash: bytes, namespace: str, now: Instant) -> IdempotentAnswer:
    row = tables.idempotency.get((namespace, key))
    if row is None or now - row.created_at >= IDEMPOTENCY_KEPT:
        tables.idempotency[namespace, key] = IdempotentRow(body_hash, created_at=now, begun_at=now)
        return IdempotentAnswer(mine=True, created_at=now)
    if row.body_hash != body_hash:
        return IdempotentAnswer(mine=False, created_at=row.created_at, same_body=False)
    if row.status is not None:
        return IdempotentAnswer(mine=False, created_at=row.created_at, status=row.status, body=row.body)
    if now - row.begun_at > IN_FLIGHT_MAX:
        row.begun_at = now
        return IdempotentAnswer(mine=True, created_at=row.created_at)
    return IdempotentAnswer(mine=False, created_at=row.created_at)


def end_idempotent(tables: Tables, key: str, status: int, body: bytes, namespace: str) -> None:
    row = tables.idempotency.get((namespace, key))
    if row is not None:
        row.status = status
        row.body = body


# --- logs


def append_logs(tables: Tables, lines: Sequence[LogLine]) -> None:
    for line in lines:
        tables.log_number += 1
        tables.log_lines.setdefault(line.run_id, []).append((tables.log_number, line))


def logs(tables: Tables, run_id: UUID, after: int, limit: int) -> list[tuple[int, LogLine]]:
    return [entry for entry in tables.log_lines.get(run_id, ()) if entry[0] > after][:limit]


# --- numbers


def stats(tables: Tables, namespace: str) -> Stats:
    counts: Counter[str] = Counter()
    oldest: Instant | None = None
    for run in tables.runs.values():
        if run.lane.namespace != namespace:
            continue
        waits_for_worker = run.state is State.QUEUED and not tables.known(run)
        counts[State.HELD.word if waits_for_worker else run.state.word] += 1
        if run.state is State.QUEUED and not waits_for_worker:
            oldest = run.ready_at if oldest is None else min(oldest, run.ready_at)
    counts.update(job.state.word for job in tables.jobs.values() if job.lane.namespace == namespace)
    due = (at for at, _, job_id in tables.due if tables.jobs[job_id].lane.namespace == namespace)
    return Stats(
        by_status=dict(counts),
        queues=tuple(queues(tables, namespace)),
        workers=sum(row.info.lost_at is None for row in tables.workers.values()),
        schedulers=len(tables.schedulers),
        oldest_ready_at=oldest,
        next_fire_at=next(due, None),
        dead_letters=sum(run.lane.namespace == namespace for run in tables.dead_letters.values()),
    )


# --- upkeep


def upkeep(tables: Tables, history_days: int, log_days: int, now: Instant) -> dict[str, int]:
    return {
        "history": _drop_history(tables, now - history_days * DAY),
        "logs": _drop_logs(tables, now - log_days * DAY),
        "idempotency": _drop_answers(tables, now - IDEMPOTENCY_KEPT),
        "dead_letters": _drop_dead_letters(tables, now - DEAD_LETTERS_KEPT),
        "workers": _drop_workers(tables, now - LOST_WORKERS_KEPT),
    }


def _drop_history(tables: Tables, before: Instant) -> int:
    old = [run.id for run in tables.history.values() if run.finished_at is not None and run.finished_at < before]
    for run_id in old:
        tables.forget_ended(run_id)
    return len(old)


def _drop_logs(tables: Tables, before: Instant) -> int:
    dropped = 0
    for run_id, entries in list(tables.log_lines.items()):
        kept = [entry for entry in entries if entry[1].at >= before]
        dropped += len(entries) - len(kept)
        if kept:
            tables.log_lines[run_id] = kept
        else:
            del tables.log_lines[run_id]
    return dropped


def _drop_answers(tables: Tables, before: Instant) -> int:
    old = [name for name, row in tables.idempotency.items() if row.created_at <= before]
    for name in old:
        del tables.idempotency[name]
    return len(old)


def _drop_dead_letters(tables: Tables, before: Instant) -> int:
    rows = tables.dead_letters
    old = [run.id for run in rows.values() if run.finished_at is not None and run.finished_at < before]
    for run_id in old:
        del rows[run_id]
    return len(old)


def _drop_workers(tables: Tables, before: Instant) -> int:
    old = [
        worker
        for worker, row in tables.workers.items()
        if row.info.lost_at is not None and row.info.lost_at < before and worker not in tables.held_by
    ]
    for worker in old:
        del tables.workers[worker]
    return len(old)
