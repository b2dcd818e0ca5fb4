"""Rows and their indexes. Every change of a run's state goes through `move`, which asks the table of states."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from uuid import UUID

from mainspring.core.model import (
    Instant,
    Job,
    JobState,
    LogLine,
    NewJob,
    QueueInfo,
    Run,
    TaskInfo,
    WorkerInfo,
)
from mainspring.core.states import Event, State, after
from mainspring.ports.store import Hint, Sign, Topic
from mainspring.ports.timetables import JobVersion, StoredCalendar
from mainspring.stores.memory.lines import Line

OVERLAP = "overlap"
DUE_STATES = (JobState.SCHEDULED, JobState.ACTIVE)


@dataclass(slots=True)
class WorkerRow:
    info: WorkerInfo
    culprit: UUID | None = None


@dataclass(slots=True)
class IdempotentRow:
    body_hash: bytes
    created_at: Instant
    begun_at: Instant
    status: int | None = None
    body: bytes | None = None


class Tables:
    """What is remembered. Dictionaries keep the order of insertion, so equal calls give equal answers."""

    def __init__(self) -> None:
        self.jobs: dict[UUID, Job] = {}
        self.runs: dict[UUID, Run] = {}
        self.history: dict[UUID, Run] = {}
        self.dead_letters: dict[UUID, Run] = {}
        self.uniques: dict[tuple[str, str], UUID] = {}
        self.calendars: dict[tuple[str, str], StoredCalendar] = {}
        self.versions: dict[UUID, list[JobVersion]] = {}
        self.tasks: dict[tuple[str, str], TaskInfo] = {}
        self.queue_rows: dict[tuple[str, str], QueueInfo] = {}
        self.workers: dict[UUID, WorkerRow] = {}
        self.schedulers: dict[UUID, tuple[str, Instant]] = {}
        self.idempotency: dict[tuple[str, str], IdempotentRow] = {}
        self.log_lines: dict[UUID, list[tuple[int, LogLine]]] = {}
        self.log_number = 0
        self.signs: dict[UUID, Sign] = {}
        self.hints: dict[Hint, None] = {}
        # indexes
        self.lines: dict[tuple[str, str], dict[str, Line]] = {}
        self.queue_names: dict[str, list[str]] = {}
        self.last_turn: dict[str, str] = {}
        self.due: list[tuple[Instant, int, UUID]] = []
        self.held_by: dict[UUID, dict[UUID, None]] = {}
        self.live_of_job: dict[UUID, dict[UUID, None]] = {}
        self.runs_of_job: dict[UUID, list[UUID]] = {}
        self.standing: dict[UUID, UUID] = {}
        self._retries: list[tuple[Instant, int, UUID]] = []
        self._expiries: list[tuple[Instant, int, UUID]] = []

    # --- runs

    def run(self, run_id: UUID) -> Run | None:
        return self.runs.get(run_id) or self.history.get(run_id) or self.dead_letters.get(run_id)

    def live_runs(self, job_id: UUID) -> list[Run]:
        return [self.runs[run_id] for run_id in self.live_of_job.get(job_id, ())]

    def add_run(self, run: Run) -> None:
        """A new live run in its state."""
        self.runs[run.id] = run
        self.live_of_job.setdefault(run.job_id, {})[run.id] = None
        self._remember(run)
        self._enter(run)

    def add_ended(self, run: Run) -> None:
        """A record of something that never was a live run."""
        self.history[run.id] = run
        self._remember(run)
        self._release_key(run)

    def move(self, run: Run, event: Event, now: Instant) -> None:
        """Takes the edge or refuses it; what has ended goes to history, frees its key and releases who waited for it."""
        state = after(run.state, event)
        self.leave(run)
        run.state = state
        if state.ended:
            self._end(run, now)
        else:
            self._enter(run)

    def release_next(self, job_id: UUID, now: Instant) -> None:
        """Opens the oldest run held for overlap, once nothing else of the job is live."""
        live = self.live_runs(job_id)
        if not live or not all(held_for_overlap(run) for run in live):
            return
        oldest = min(live, key=lambda run: (run.scheduled_at, run.id.int))
        oldest.reason = None
        self.move(oldest, Event.OPEN, now)

    def _remember(self, run: Run) -> None:
        self.runs_of_job.setdefault(run.job_id, []).append(run.id)
        if run.stands_for_job:
            self.standing[run.job_id] = run.id

    def forget_ended(self, run_id: UUID) -> None:
        """History that is over its time is dropped."""
        run = self.history.pop(run_id)
        others = [known for known in self.runs_of_job[run.job_id] if known != run_id]
        if others:
            self.runs_of_job[run.job_id] = others
        else:
            del self.runs_of_job[run.job_id]
        if self.standing.get(run.job_id) == run_id:
            del self.standing[run.job_id]

    def _enter(self, run: Run) -> None:
        if run.state is State.QUEUED:
            self.line(run.lane.namespace, run.lane.queue, run.lane.task).add(run)
            self.hint(Topic.READY, run.lane.queue)
        elif run.state is State.RUNNING and run.worker is not None:
            self.held_by.setdefault(run.worker, {})[run.id] = None
        elif run.state is State.RETRYING:
            heappush(self._retries, (run.ready_at, run.id.int, run.id))
        if run.expires_at is not None and can_expire(run):
            heappush(self._expiries, (run.expires_at, run.id.int, run.id))

    def leave(self, run: Run) -> None:
        if run.worker is None or run.state is not State.RUNNING:
            return
        held = self.held_by[run.worker]
        del held[run.id]
        if not held:
            del self.held_by[run.worker]

    def _end(self, run: Run, now: Instant) -> None:
        run.finished_at = now
        del self.runs[run.id]
        live = self.live_of_job[run.job_id]
        del live[run.id]
        self.history[run.id] = run
        if run.state is State.FAILED:
            self.dead_letters[run.id] = run
        self._release_key(run)
        if live:
            self.release_next(run.job_id, now)
        else:
            del self.live_of_job[run.job_id]

    # --- keys

    def holder(self, namespace: str, key: str) -> UUID | None:
        return self.uniques.get((namespace, key))

    def free_key(self, namespace: str, key: str | None, job_id: UUID) -> None:
        if key is not None and self.uniques.get((namespace, key)) == job_id:
            del self.uniques[namespace, key]

    def _release_key(self, run: Run) -> None:
        if run.stands_for_job:
            self.free_key(run.lane.namespace, run.key, run.job_id)

    # --- jobs

    def put_job(self, job: Job) -> None:
        """Inserts or replaces the row and keeps the index of what is due."""
        self.drop_job(job.id)
        self.jobs[job.id] = job
        self.note_queue(job.lane.namespace, job.lane.queue)
        if job.state in DUE_STATES and job.scheduled_at is not None:
            insort(self.due, (job.scheduled_at, job.id.int, job.id))

    def drop_job(self, job_id: UUID) -> Job | None:
        """The row leaves `jobs`."""
        job = self.jobs.pop(job_id, None)
        if job is not None and job.state in DUE_STATES and job.scheduled_at is not None:
            index = bisect_left(self.due, (job.scheduled_at, job_id.int, job_id))
            if index < len(self.due) and self.due[index][2] == job_id:
                del self.due[index]
        return job

    # --- lanes and queues

    def line(self, namespace: str, queue: str, task: str) -> Line:
        self.note_queue(namespace, queue)
        tasks = self.lines.setdefault((namespace, queue), {})
        line = tasks.get(task)
        if line is None:
            line = tasks[task] = Line()
        return line

    def note_queue(self, namespace: str, queue: str) -> None:
        names = self.queue_names.setdefault(namespace, [])
        index = bisect_left(names, queue)
        if index == len(names) or names[index] != queue:
            names.insert(index, queue)

    def known(self, run: Run | NewJob) -> bool:
        """Whether a worker ever registered its task."""
        return (run.lane.namespace, run.lane.task) in self.tasks

    # --- what is due

    def due_retries(self, now: Instant, limit: int) -> list[Run]:
        """Takes out of the index what goes on now."""
        return self._take_due(self._retries, now, limit, _waits_until)

    def due_expiries(self, now: Instant, limit: int) -> list[Run]:
        """Takes out of the index what has waited too long."""
        return self._take_due(self._expiries, now, limit, _may_wait_until)

    def _take_due(
        self, heap: list[tuple[Instant, int, UUID]], now: Instant, limit: int, until: Callable[[Run], Instant | None]
    ) -> list[Run]:
        found: dict[UUID, Run] = {}
        while heap and len(found) < limit:
            instant, _, run_id = heap[0]
            run = self.runs.get(run_id)
            if run is not None and until(run) == instant:
                if instant > now:
                    break
                found[run_id] = run
            heappop(heap)
        return list(found.values())

    def next_wake(self) -> Instant | None:
        nearest = [heap[0][0] for heap in (self._retries, self._expiries) if heap]
        return min(nearest, default=None)

    # --- hints

    def hint(self, topic: Topic, key: str = "") -> None:
        self.hints[Hint(topic, key)] = None


def held_for_overlap(run: Run) -> bool:
    return run.state is State.HELD and run.reason == OVERLAP


def can_expire(run: Run) -> bool:
    """Only what has never started; a run that was given back before its handler began has not."""
    return run.attempt == 0 and run.state in (State.QUEUED, State.HELD)


def _waits_until(run: Run) -> Instant | None:
    return run.ready_at if run.state is State.RETRYING else None


def _may_wait_until(run: Run) -> Instant | None:
    return run.expires_at if can_expire(run) else None
