"""Runs are claimed, and how their attempts ended is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from mainspring.core.model import Claimed, Ending, Instant, Run, Verdict
from mainspring.core.states import Event, ForbiddenTransition, State
from mainspring.stores.memory.lines import Line
from mainspring.stores.memory.tables import Tables

SUSPECT_DEATHS = 2

EVENT_OF_ENDING = {
    State.COMPLETED: Event.COMPLETE,
    State.FAILED: Event.EXHAUST,
    State.CANCELLED: Event.CANCEL,
    State.RETRYING: Event.RETRY,
    State.QUEUED: Event.GIVE_BACK,
    State.UNKNOWN: Event.DOUBT,
    State.PARKED: Event.PARK,
}


class Claim:
    """One claim: the open queues take turns, each giving the best head of its lines."""

    def __init__(
        self, tables: Tables, *, tasks: Sequence[str], queues: Sequence[str] | None, suspects: bool, namespace: str
    ) -> None:
        self._tables = tables
        self._namespace = namespace
        self._suspects = suspects
        self._aside: list[tuple[Line, Run]] = []
        self._turns = [(name, lines) for name in self._order(queues) if (lines := self._lines(name, tasks))]

    def take(self, worker: UUID, count: int, bytes_max: int, now: Instant) -> list[Claimed]:
        claimed: list[Claimed] = []
        fit = partial(self._fits, now=now)
        room = bytes_max
        turns = self._turns
        while turns and len(claimed) < count:
            name, lines = turns.pop(0)
            heads = [(entry, line) for line in lines if (entry := line.head(now, fit, self._aside))]
            if not heads:
                continue
            entry, line = min(heads, key=lambda head: head[0][:3])
            room -= len(entry[4].payload)
            if claimed and room < 0:
                break
            claimed.append(_start(self._tables, line.take(), worker, now))
            self._tables.last_turn[self._namespace] = name
            turns.append((name, lines))
        for line, run in self._aside:
            line.add(run)
        return claimed

    def _order(self, queues: Sequence[str] | None) -> list[str]:
        """The open queues, beginning after the one that gave last."""
        names = self._tables.queue_names.get(self._namespace, [])
        rows = self._tables.queue_rows
        wanted = [name for name in names if queues is None or name in queues]
        opened = [name for name in wanted if (row := rows.get((self._namespace, name))) is None or not row.paused]
        last = self._tables.last_turn.get(self._namespace, "")
        return [name for name in opened if name > last] + [name for name in opened if name <= last]

    def _lines(self, queue: str, tasks: Sequence[str]) -> list[Line]:
        known = self._tables.lines.get((self._namespace, queue), {})
        return [known[task] for task in dict.fromkeys(tasks) if task in known]

    def _fits(self, run: Run, now: Instant) -> bool:
        if run.deaths >= SUSPECT_DEATHS and not self._suspects:
            return False
        return run.expires_at is None or run.expires_at > now or run.attempt > 0


def _start(tables: Tables, run: Run, worker: UUID, now: Instant) -> Claimed:
    run.worker = worker
    run.fence += 1
    run.attempt += 1
    run.started_at = now
    if run.attempt == 1:
        run.lateness = max(0, now - max(run.scheduled_at, run.created_at))
    tables.move(run, Event.CLAIM, now)
    return Claimed(
        id=run.id,
        fence=run.fence,
        attempt=run.attempt,
        spent=run.spent,
        deaths=run.deaths,
        task=run.lane.task,
        payload=run.payload,
        document=run.document,
        scheduled_at=run.scheduled_at,
        started_at=now,
        job_id=run.job_id,
        queue=run.lane.queue,
        priority=run.priority,
        catch_up=run.catch_up,
        attempts=run.attempts,
        lateness=run.lateness or 0,
        created_at=run.created_at,
    )


def finish(tables: Tables, worker: UUID, endings: Sequence[Ending], now: Instant) -> list[Verdict]:
    for ending in endings:
        if ending.state not in EVENT_OF_ENDING:
            raise ForbiddenTransition(State.RUNNING, Event.EXPIRE)
    return [_finish_one(tables, worker, ending, now) for ending in endings]


def _finish_one(tables: Tables, worker: UUID, ending: Ending, now: Instant) -> Verdict:
    run = tables.runs.get(ending.id)
    if run is None or run.state is not State.RUNNING or run.fence != ending.fence or run.worker != worker:
        return Verdict.STALE
    if run.cancel_requested_at is not None and ending.state is not State.CANCELLED:
        return Verdict.CANCEL_REQUESTED
    run.result = ending.result
    run.error = ending.error
    run.spent = ending.spent
    run.deaths = ending.deaths
    run.attempts = ending.attempts or run.attempts
    run.reason = ending.reason or run.reason
    if not ending.started:
        take_attempt_back(run)
    if ending.state is State.RETRYING:
        run.ready_at = now + ending.wait
    leave_worker(tables, run, EVENT_OF_ENDING[ending.state], now)
    return Verdict.ACCEPTED


def take_attempt_back(run: Run) -> None:
    """The handler never began, so the next claim starts this attempt anew."""
    run.attempt -= 1
    if run.attempt == 0:
        run.lateness = None


def leave_worker(tables: Tables, run: Run, event: Event, now: Instant) -> None:
    """Takes the edge; what has not ended belongs to no worker and has not started."""
    worker, started_at = run.worker, run.started_at
    tables.leave(run)
    run.worker = run.started_at = None
    tables.move(run, event, now)
    if run.state.ended:
        run.worker, run.started_at = worker, started_at


def progress(tables: Tables, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
    return [_progress_one(tables, worker, *item) for item in items]


def _progress_one(tables: Tables, worker: UUID, run_id: UUID, fence: int, text: str) -> bool:
    run = tables.runs.get(run_id)
    if run is None or run.state is not State.RUNNING or run.fence != fence or run.worker != worker:
        return False
    run.progress = text
    return True
