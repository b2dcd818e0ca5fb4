"""What is needed of a store. The docstrings are the contract; tests/contract/ holds every store to them.

Rules that hold for every verb:

- It is a batch and one transaction: all of it happens or none. It never waits for another program's transaction
  longer than the store's own timeouts, and it raises `StoreUnavailable` (with `unknown_outcome` where a commit was
  under way) when the store cannot be reached, `StoreRefuses` when it takes no writes.
- `now=None` means the store's clock. Tests and the simulation pass it; products never do.
- A verb that makes something ready, asks a worker for something or changes a schedule publishes a `Hint` after
  its commit, coalesced, never inside the transaction. Hints may be lost, doubled or reordered: nothing but
  waiting time may depend on them.
- What a reader gets back is a copy: changing it changes nothing in the store.
- A run in state QUEUED whose task no worker ever registered is returned as HELD with reason `no_worker`, and is
  listed and counted so; the row itself is not touched when a worker registers it (its lane opens).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from mainspring.core.model import (
    SECOND,
    BeatAnswer,
    Claimed,
    Duration,
    Ending,
    Evidence,
    Firing,
    Instant,
    Job,
    JobFilter,
    JobState,
    JobView,
    Lane,
    LogLine,
    NewJob,
    QueueInfo,
    Run,
    RunFilter,
    Stats,
    TaskInfo,
    Verdict,
    WorkerInfo,
)
from mainspring.ports.timetables import Timetables

Source = TypeVar("Source", bound=Job | Run)


class Topic(StrEnum):
    READY = "ready"  # key: a queue in which something became ready
    WORKER = "worker"  # key: the id of a worker that should ask for its orders now
    JOBS = "jobs"  # some schedule is new or changed; key: "", or the instant before which nothing changed


class Hint(NamedTuple):
    topic: Topic
    key: str = ""


def jobs_hint(new: Iterable[NewJob]) -> Hint:
    """Tells of new jobs by the second of the soonest, so that nobody looks at once for what is far."""
    instants = [at for job in new if (at := job.next_at if job.scheduled_at is None else job.scheduled_at) is not None]
    return Hint(Topic.JOBS, str(min(instants) // SECOND * SECOND) if instants else "")


class Sign(StrEnum):
    """What a watcher sees of a process that holds a sign of life."""

    HELD = "held"
    STOPPED = "stopped"  # held, but the process is stopped (only where the operating system can be asked)
    FREE = "free"


class Signs(NamedTuple):
    """What was seen at one look. `epoch` changes whenever an absence could be the store's own doing (a restart,
    a reconnection of the watcher): absences count only while it stays the same."""

    epoch: str
    seen: dict[UUID, Sign]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Where stores differ, by name."""

    name: str
    process_signs: bool  # each worker process holds its own operating-system lock: no lease, no beats needed
    session_signs: bool  # a keeper's database session holds a lock; free for two seconds in one epoch means dead
    hints: bool  # hints reach other processes
    durable: bool


class Submitted(NamedTuple):
    """`known` is False where no worker has registered the task yet; `existed` where a repeat found the first send."""

    id: UUID
    known: bool
    existed: bool = False


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run made beside the schedule: trigger, retry of an ended run, replay, backfill.

    With `respect_overlap` the rule is that of its own document, and runs of a catch-up follow one another.
    """

    id: UUID
    job_id: UUID
    origin: str
    scheduled_at: Instant | None = None
    replaces: UUID | None = None
    payload: bytes | None = None
    document: str | None = None
    catch_up: bool = False
    created_by: str | None = None
    lane: Lane | None = None
    priority: int | None = None

    def over(self, source: Source) -> Source:
        """The job or run that it is made from, with what this run is to have instead."""
        if self.lane is None and self.priority is None and self.document is None:
            return source
        return replace(
            source,
            lane=self.lane or source.lane,
            priority=source.priority if self.priority is None else self.priority,
            document=source.document if self.document is None else self.document,
        )


@dataclass(frozen=True, slots=True)
class JobEdit:
    """A change of a job: applies only while the job has `version`, and raises the version by one.

    `firing`, decided by the definition that held until now, is applied first, under the same guards as in `fire`.
    None leaves a field alone, except `next_at` and `next_scheduled_at`, which are always set.
    """

    job_id: UUID
    version: int
    state: JobState | None = None
    lane: Lane | None = None
    priority: int | None = None
    payload: bytes | None = None
    document: str | None = None
    key: str | None = None
    expires_at: Instant | None = None
    next_at: Instant | None = None
    next_scheduled_at: Instant | None = None
    fired_through: Instant | None = None
    firing: Firing | None = None
    definition_changed: bool = False


class CancelOutcome(NamedTuple):
    """What a cancel did: `ended` runs are cancelled, `asked` ones are running and will be, `untouched` had ended."""

    job_id: UUID
    job_changed: bool
    ended: tuple[UUID, ...]
    asked: tuple[UUID, ...]


class Fired(NamedTuple):
    """What `fire` did for one firing; `applied` is False where its guards did not hold (somebody else fired it)."""

    job_id: UUID
    applied: bool
    runs: tuple[UUID, ...] = ()
    skipped: int = 0


class Rescued(NamedTuple):
    run_id: UUID
    worker: UUID
    state: int
    reason: str


@dataclass(frozen=True, slots=True)
class IdempotentAnswer:
    """State of an Idempotency-Key: new (`mine`), in flight elsewhere, answered, or used with another body."""

    mine: bool
    created_at: Instant
    same_body: bool = True
    status: int | None = None
    body: bytes | None = None


class Migrations(Protocol):
    """The schema of a store and the numbered steps to it."""

    async def status(self) -> list[tuple[str, bool]]:
        """Each step's name and whether it is applied. Raises SchemaError where a checksum differs."""
        ...

    async def up(self) -> list[str]:
        """Applies what is missing under a lock that two nodes cannot both hold; the names of what was applied."""
        ...

    def sql(self) -> str:
        """All steps as a script for a person to read or run."""
        ...


class Store(Timetables, Protocol):
    """Everything that is remembered. Safe to use from one event loop; safe against any number of other processes."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def migrations(self) -> Migrations: ...

    async def open(self) -> None:
        """Connects and checks the schema: SchemaError (with the next step) if it is absent, older than this program
        needs, tampered with, or its `min_program` is newer than this program."""
        ...

    async def close(self) -> None:
        """Lets running verbs finish, releases signs and connections. Idempotent."""
        ...

    async def now(self) -> Instant:
        """The store's clock."""
        ...

    def subscribe(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        """Calls `listener` in the event loop for each hint, own ones included; returns the way to stop it."""
        ...

    # --- submitting -------------------------------------------------------------------------------------------

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        """Stores the jobs, in order, all or none.

        Immediate ones become queued runs (id = the job's id, ready_at = now, scheduled_at = now unless given, and a
        given one that lies in the past stays as it is). Others become rows of `jobs`: fired_through = now, version 1;
        recurring ones also get a row of `job_versions`. A `key` held by a live job: KeyTaken, nothing stored (two
        equal keys within the batch as well). `repeat=True` says that an earlier send of these ids may have been
        stored: those found in runs, jobs or history (even ended; a delayed job that has fired is found by its runs'
        `job_id`) are withdrawn and answered `existed=True`, their key does not count as taken. Without
        it, an id that is still live is a bug of the caller and raises Conflict. Ids more than a day away from the
        store's now: InvalidInput.
        """
        ...

    async def find_key(self, key: str, namespace: str = "default") -> UUID | None:
        """The live job that holds the key."""
        ...

    # --- jobs --------------------------------------------------------------------------------------------------

    async def jobs(self, ids: Sequence[UUID]) -> list[JobView | None]:
        """The jobs in the order asked; None for one that is unknown or deleted. One-time jobs that have left `jobs`
        are known by the run that stands for them; their status is that of the job's newest run."""
        ...

    async def list_jobs(self, where: JobFilter, *, after: UUID | None = None, limit: int = 50) -> list[JobView]:
        """Newest first (by id), those older than `after`. `where.ended_since` leaves out completed one-time jobs
        that ended before it. Never a full scan for the default filter."""
        ...

    async def change(self, edit: JobEdit, *, now: Instant | None = None) -> Job | None:
        """Applies the edit; None ("read again") where the version is no longer the one named, the job has left `jobs`
        (it became a run), the guards of its firing do not hold, or a recurring job's `next_at` would not lie after
        fired_through: somebody fired meanwhile. A paused job's firing is applied as well. The key of another live
        job: KeyTaken. Unknown job: NotFound."""
        ...

    async def cancel(
        self,
        ids: Sequence[UUID],
        *,
        delete: bool = False,
        by: str | None = None,
        now: Instant | None = None,
    ) -> list[CancelOutcome]:
        """Cancels jobs or single runs by id: what is held, queued, retrying or unknown ends cancelled; what is
        running or parked gets `cancel_requested_at` (kept if set before) and its worker a hint; a row of `jobs` becomes
        cancelled (a one-time one leaves a history row under the id that its run would have had). A job's id covers all its
        unfinished runs. `delete` also
        removes the definition: the job is unknown and its key free from then on, its runs stay. Unknown ids: NotFound,
        and nothing is cancelled."""
        ...

    async def add_runs(
        self,
        runs: Sequence[NewRun],
        *,
        respect_overlap: bool = False,
        redeem_dead_letters: bool = False,
        now: Instant | None = None,
    ) -> list[Run]:
        """Makes runs beside the schedule, queued at once; lane, priority, payload and document come from the run it
        replaces, else from the job, unless given; created_at = now. They hold no key and do not stand for the job. A
        delayed job that has not fired: the run *is* its run (key, created_at), and the row leaves `jobs`. Conflict for a
        cancelled recurring job, unless the run replaces one.
        `respect_overlap`: decided as in `fire`; where that says skip (rule `skip` and a live run): Conflict.
        `redeem_dead_letters`: the dead letter of `replaces` is removed in the same transaction; Conflict where there
        is none any more. The same id twice: Conflict."""
        ...

    # --- runs --------------------------------------------------------------------------------------------------

    async def runs(self, ids: Sequence[UUID]) -> list[Run | None]:
        """Live and ended runs and skipped occurrences, in the order asked."""
        ...

    async def list_runs(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        """Newest first (by id, `where.after_id` exclusive), live and ended alike."""
        ...

    async def retry_now(self, run_id: UUID, *, now: Instant | None = None) -> bool:
        """A retrying run becomes queued at once (ready_at = now); False where it is not retrying."""
        ...

    async def resolve(
        self, run_id: UUID, state: int, *, note: str | None = None, by: str | None = None, now: Instant | None = None
    ) -> bool:
        """An unknown run becomes completed, failed (with its dead letter) or queued (its ready_at kept); False where it is
        not unknown. The note becomes its reason."""
        ...

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        """Best effort, after the fact, never part of a finish."""
        ...

    async def logs(self, run_id: UUID, *, after: int = 0, limit: int = 1000) -> list[tuple[int, LogLine]]:
        """Lines in order, each with its number; `after` is exclusive."""
        ...

    async def dead_letters(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        """Failed runs that nobody replayed or discarded, newest first."""
        ...

    async def discard_dead_letters(self, ids: Sequence[UUID], *, by: str | None = None) -> list[bool]:
        """Removes them; False for one that is not there."""
        ...

    # --- working -----------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerInfo, tasks: Sequence[TaskInfo], *, now: Instant | None = None) -> Instant:
        """A worker process begins: its row, its tasks (their lanes open). Answers the store's now.
        Registering the same id again (after an outage) revives it only if it was not declared lost."""
        ...

    async def known_tasks(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[TaskInfo]:
        """What workers registered; all of it, or the names asked."""
        ...

    async def claim(
        self,
        worker: UUID,
        *,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        count: int,
        suspects: bool = True,
        bytes_max: int = 8 * 1024 * 1024,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> list[Claimed]:
        """Takes at most `count` ready runs whose task is in `tasks` from open queues (None: all): state RUNNING,
        fence + 1, attempt + 1, started_at = now, lateness at the first attempt (now less the later of scheduled_at and
        created_at, never negative). Within a queue strictly by priority (higher first), ready_at, id; queues take
        turns. Never one whose ready_at lies ahead, whose queue is paused, which another claim holds, or which never
        started (attempt 0) and has expires_at ≤ now; never waits
        for another claim. `suspects=False` leaves out runs with two deaths behind them. A worker that is unknown or
        was declared lost gets nothing. At least one run is returned if one is ready, however large."""
        ...

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        """Records how attempts ended, each only while the run is RUNNING with that fence and that worker; others are STALE and
        change nothing. A run with `cancel_requested_at` takes only endings whose state is CANCELLED: else
        CANCEL_REQUESTED, and nothing changes. Ended states move the row to history, free its key, and a failed one
        leaves a dead letter; held runs waiting for it (overlap) are released. RETRYING: ready_at = now + wait.
        QUEUED: given back with its old ready_at (its place); `started=False` also takes the attempt number back.
        UNKNOWN stays. What has not ended has no worker and no started_at; a `reason` or `attempts` of None in the
        ending keeps the row's. A repeat of an accepted ending is answered STALE: a caller who lost the reply
        reads the run."""
        ...

    async def progress(self, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
        """Sets the progress (JSON text) of running runs, guarded by their fence."""
        ...

    async def beat(
        self,
        workers: Sequence[UUID],
        *,
        keeper: UUID | None = None,
        now: Instant | None = None,
    ) -> list[BeatAnswer]:
        """Renews the workers (beat + 1, beat_at = now; `keeper` set where given) and tells each what is asked of it: runs whose
        cancel was requested with their fences, whether to drain, and whether it is still known. With
        `process_signs` it only reads."""
        ...

    async def drain(self, worker: UUID) -> bool:
        """Asks the worker to drain; False where it is unknown."""
        ...

    async def deregister(self, worker: UUID, *, now: Instant | None = None) -> None:
        """A worker has stopped by itself: its row goes. One that still holds runs stays as a lost one (evidence DEATH,
        unless a verdict was there before) until the next `rescue` has taken them."""
        ...

    async def workers(self, *, lost: bool = False) -> list[WorkerInfo]:
        """The registered workers with how many runs each holds; `lost` includes those declared lost that still hold runs."""
        ...

    # --- signs of life -----------------------------------------------------------------------------------------

    async def hold_sign(self, identity: UUID) -> None:
        """This process shows that it lives, until it closes the store or dies, in the way the store offers."""
        ...

    async def signs(self, identities: Sequence[UUID]) -> Signs:
        """What can be seen of them now."""
        ...

    async def declare_lost(
        self,
        worker: UUID,
        evidence: Evidence,
        *,
        beat: int | None = None,
        culprit: UUID | None = None,
        now: Instant | None = None,
    ) -> bool:
        """Marks the worker lost. With `beat` only while its beat is still that (it was silent since). From then on it
        claims nothing, and what it holds may be rescued. False where it was lost already, is unknown or has beaten.
        `culprit`: the run because of which the keeper killed it (evidence KILL)."""
        ...

    async def rescue(self, *, limit: int = 500, random_value: float = 0.5, now: Instant | None = None) -> list[Rescued]:
        """Ends the lost attempts of workers that were declared lost or are unknown, by `core.decide.decide_lost`,
        each guarded by its fence, its attempt recorded and its error told by `core.losses.lose`. QUEUED keeps ready_at
        (its place); a run of an unknown worker is one of a dead one. Never touches a run whose worker is neither,
        nor yet one that bears more silence than its worker's lease (`core.losses.borne_until`)."""
        ...

    # --- scheduling ---------------------------------------------------------------------------------------------

    async def scheduler_beat(
        self, scheduler: UUID, *, host: str, silent_after: Duration, now: Instant | None = None
    ) -> list[UUID]:
        """Says that this scheduler lives; answers all that do. Ownership only saves work: it need not be exact."""
        ...

    async def scheduler_stop(self, scheduler: UUID) -> None: ...

    async def schedulers(
        self, *, silent_after: Duration, now: Instant | None = None
    ) -> list[tuple[UUID, str, Instant]]: ...

    async def due_jobs(self, shards: Sequence[int] | None, *, until: Instant, limit: int = 5000) -> list[Job]:
        """Jobs (scheduled or active) with scheduled_at ≤ until, soonest first; None: of every shard. The shard of a
        job is the last byte of its id."""
        ...

    async def coming_jobs(
        self, shards: Sequence[int] | None, *, after: tuple[Instant, UUID] | None, until: Instant, limit: int = 5000
    ) -> list[Job]:
        """Like `due_jobs`, for looking ahead: from after that (scheduled_at, id) on, and without the payloads."""
        ...

    async def fire(self, firings: Sequence[Firing], *, now: Instant | None = None) -> list[Fired]:
        """Applies each firing under its guards: the job is scheduled or active, has that version, and every nominal instant in it
        lies after fired_through (and the whole firing is refused otherwise). A one-time job's fired_through is not
        asked: its row, which leaves `jobs`, is the guard, so that one whose time lies in the past fires too.
        The runs' created_at is the job's (lateness counts from it or the instant), origin `schedule`, expires_at the
        job's or by its policy's `expires_in`; a one-time job's run takes the key along, a recurring job keeps it.
        Run ids are `core.ids.occurrence_id(job, nominal)`; ready_at = max(now, scheduled_at) is never before the
        instant. A delayed job's row leaves `jobs`; a recurring one gets next_at, fired_through, version unchanged.
        Overlap is decided here by `core.overlap.decide_overlap` on the job's live runs; a skipped occurrence becomes a
        history row (state SKIPPED, its reason). `next_at=None` on a recurring job finishes it."""
        ...

    async def promote(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        """Retrying runs whose time has come become queued, their ready_at kept."""
        ...

    async def expire(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        """Held and queued runs that never started (attempt 0) with expires_at ≤ now end as skipped(expired)."""
        ...

    async def next_wake(self) -> Instant | None:
        """When the next retry is due or the next run expires, as far as the store can say cheaply."""
        ...

    async def upkeep(self, *, history_days: int = 30, log_days: int = 7, now: Instant | None = None) -> dict[str, int]:
        """Partitions ahead, old ones dropped whole, idempotency keys, lost workers and dead letters past their time
        removed. What it did, by name."""
        ...

    # --- queues, idempotency, numbers ---------------------------------------------------------------------------

    async def queues(self, namespace: str = "default") -> list[QueueInfo]: ...

    async def pause_queue(self, name: str, *, paused: bool, namespace: str = "default") -> QueueInfo:
        """After the answer no claim takes from a paused queue."""
        ...

    async def set_queue_limits(self, name: str, limits: str | None, namespace: str = "default") -> QueueInfo: ...

    async def purge_queue(self, name: str, namespace: str = "default", *, now: Instant | None = None) -> int:
        """Cancels everything queued, held or retrying in it; how many."""
        ...

    async def begin_idempotent(
        self, key: str, body_hash: bytes, *, namespace: str = "default", now: Instant | None = None
    ) -> IdempotentAnswer:
        """Reserves the key for 24 h. In flight for over 60 s: it is taken over, with the first `created_at`."""
        ...

    async def end_idempotent(self, key: str, status: int, body: bytes, *, namespace: str = "default") -> None: ...

    async def forget_idempotent(self, key: str, *, namespace: str = "default") -> None:
        """The request failed before anything was stored: the key is free again."""
        ...

    async def stats(self, namespace: str = "default") -> Stats: ...
