"""The nouns: what a job asks for, and the rows that jobs, runs and their endings are.

Times are `Instant`s: whole microseconds since 1970-01-01 UTC in the store's time. Spans are
`Duration`s: whole microseconds. Both are plain integers, so that every store, language and
index holds them alike and nothing on the hot path converts dates.

A `document` is the JSON object that a user gave, normalised and without what was left out;
`core.policy` reads it into typed rules. It travels as text, so that equal ones are read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple
from uuid import UUID

from mainspring.core.states import Outcome, State

Instant = int
Duration = int

MILLISECOND: Duration = 1_000
SECOND: Duration = 1_000_000
MINUTE: Duration = 60 * SECOND
HOUR: Duration = 60 * MINUTE
DAY: Duration = 24 * HOUR

DEFAULT_NAMESPACE = "default"
DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 50
SHARDS = 256

PAYLOAD_BYTES_MAX = 256 * 1024
RESULT_BYTES_MAX = 256 * 1024
TRACEBACK_BYTES_MAX = 64 * 1024
LOG_BYTES_MAX = 1024 * 1024
BATCH_BYTES_MAX = 8 * 1024 * 1024
BATCH_JOBS_MAX = 10_000
DEATHS_MAX = 3


class Kind(IntEnum):
    """How many runs a job can have, and when. Stored: never renumber."""

    IMMEDIATE = 0
    DELAYED = 1
    RECURRING = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class JobState(IntEnum):
    """Of a row in `jobs`; a one-time job leaves the table when it fires. Stored: never renumber."""

    SCHEDULED = 0
    WAITING = 1
    ACTIVE = 2
    PAUSED = 3
    FINISHED = 4
    CANCELLED = 5

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def ended(self) -> bool:
        return self in (JobState.FINISHED, JobState.CANCELLED)


class Origin(StrEnum):
    """Why a run exists."""

    SUBMIT = "submit"
    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    RETRY = "retry"
    REPLAY = "replay"
    BACKFILL = "backfill"


class Evidence(StrEnum):
    """What says that a worker no longer carries out its runs."""

    DEATH = "death"  # its keeper, or its own lock, says that the process is gone
    HOST_DEATH = "host_death"  # worker and keeper are gone together
    STALL = "stall"  # the process is stopped
    SILENCE = "silence"  # no beats of the whole host for a lease
    KILL = "kill"  # its keeper killed it because a run blocked it past its timeout
    DRAIN = "drain"  # it ended at the end of a drain with threads still running


class Lane(NamedTuple):
    """What claims and counts go by; the store interns it as a small number."""

    namespace: str
    queue: str
    task: str
    region: str = ""
    placement: str = ""


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job as it is handed to the store.

    An immediate one (`next_at` None, kind IMMEDIATE) is born as a run with the job's id; the others become
    rows of `jobs`. `document` is None where nothing departs from the defaults.
    """

    id: UUID
    lane: Lane
    kind: Kind = Kind.IMMEDIATE
    priority: int = DEFAULT_PRIORITY
    payload: bytes = b"{}"
    document: str | None = None
    key: str | None = None
    next_at: Instant | None = None
    scheduled_at: Instant | None = None
    expires_at: Instant | None = None
    reason: str | None = None
    created_by: str | None = None


@dataclass(slots=True)
class Job:
    """A row of `jobs`."""

    id: UUID
    lane: Lane
    kind: Kind
    state: JobState
    priority: int
    payload: bytes
    document: str | None
    key: str | None
    next_at: Instant | None
    scheduled_at: Instant | None
    fired_through: Instant
    version: int
    runs_made: int
    created_at: Instant
    updated_at: Instant
    created_by: str | None
    paused_at: Instant | None = None
    expires_at: Instant | None = None


@dataclass(slots=True)
class Run:
    """A row of `runs` or of `history`; `finished_at` is None until it has ended.

    `attempt` is the number of the newest started attempt, `spent` how many of `max_attempts` are used up,
    `deaths` how many times its worker's process died under it. `attempts` is the JSON array of the ended
    attempts where there was more than the one that the row itself tells of. `stands_for_job` is true where
    this run is how a one-time job is known once it has left `jobs`.
    """

    id: UUID
    job_id: UUID
    lane: Lane
    kind: Kind
    state: State
    priority: int
    payload: bytes
    document: str | None
    ready_at: Instant
    scheduled_at: Instant
    created_at: Instant
    fence: int = 0
    attempt: int = 0
    spent: int = 0
    deaths: int = 0
    reason: str | None = None
    key: str | None = None
    origin: str = Origin.SUBMIT
    replaces: UUID | None = None
    worker: UUID | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None
    lateness: Duration | None = None
    expires_at: Instant | None = None
    cancel_requested_at: Instant | None = None
    progress: str | None = None
    result: bytes | None = None
    error: str | None = None
    attempts: str | None = None
    count: int = 1
    catch_up: bool = False
    stands_for_job: bool = True
    created_by: str | None = None


class Claimed(NamedTuple):
    """What a worker needs of a run that it has just claimed; `attempt` is the number this claim starts."""

    id: UUID
    fence: int
    attempt: int
    spent: int
    deaths: int
    task: str
    payload: bytes
    document: str | None
    scheduled_at: Instant
    started_at: Instant
    job_id: UUID
    queue: str
    priority: int
    catch_up: bool
    attempts: str | None
    lateness: Duration
    created_at: Instant


@dataclass(slots=True)
class Ending:
    """How an attempt ended and what becomes of its run; applies only while (run, fence) holds.

    `state` is where the run goes: an ended state moves it to history; RETRYING and QUEUED (given back) keep it.
    `retry_at` says when a retrying run goes on; None with `wait` set means `wait` after the store's now.
    `attempts` is the JSON array of all attempts including this one, or None if this one is the only one and the
    row itself tells of it. `started` is False for a claim whose handler never began: its attempt number is taken back.
    """

    id: UUID
    fence: int
    state: State
    outcome: Outcome
    result: bytes | None = None
    error: str | None = None
    reason: str | None = None
    wait: Duration = 0
    spent: int = 0
    deaths: int = 0
    attempts: str | None = None
    started: bool = True


class Verdict(IntEnum):
    """What the store answered to an ending."""

    ACCEPTED = 0
    STALE = 1
    CANCEL_REQUESTED = 2


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What workers said about a task: how it is called, and what its decorator asked for."""

    name: str
    signature: str | None = None
    defaults: str | None = None


@dataclass(slots=True)
class WorkerInfo:
    """A worker process as it registers, and as it is listed."""

    id: UUID
    host: str
    pid: int
    queues: tuple[str, ...]
    slots: int
    version: str
    lease: Duration
    namespace: str = DEFAULT_NAMESPACE
    keeper: UUID | None = None
    started_at: Instant = 0
    beat_at: Instant = 0
    beat: int = 0
    running: int = 0
    draining: bool = False
    lost_at: Instant | None = None
    evidence: str | None = None


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    """What the store tells a worker when it renews: `known` is False once its runs have been taken from it."""

    known: bool
    drain: bool = False
    cancel: tuple[tuple[UUID, int], ...] = ()
    now: Instant = 0


class SkippedOccurrence(NamedTuple):
    nominal: Instant
    scheduled_at: Instant
    reason: str
    stands_for: int = 1


class DueOccurrence(NamedTuple):
    nominal: Instant
    scheduled_at: Instant
    catch_up: bool = False


@dataclass(frozen=True, slots=True)
class Firing:
    """What a scheduler decided for one job: all or nothing, and only while `version` and `fired_through` allow.

    The store applies it if the job is active (or scheduled), its version is `version`, and the first nominal
    instant lies after `fired_through`. Overlap is decided inside the same transaction by `core.overlap`.
    """

    job_id: UUID
    version: int
    runs: tuple[DueOccurrence, ...] = ()
    skips: tuple[SkippedOccurrence, ...] = ()
    fired_through: Instant = 0
    next_at: Instant | None = None
    next_scheduled_at: Instant | None = None


class LogLine(NamedTuple):
    run_id: UUID
    attempt: int
    at: Instant
    level: str
    message: str
    fields: str | None = None


@dataclass(slots=True)
class QueueInfo:
    name: str
    paused: bool = False
    queued: int = 0
    running: int = 0
    held: int = 0
    limits: str | None = None


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs a list holds; None means any. `ended_since` bounds completed one-time jobs.

    `created_after` is included, `created_before` and `next_before` (of `next_at`) are not. `payload` compares
    fields of the payload as text: a text as it is, anything else as its JSON; null equals nothing.
    """

    namespace: str = DEFAULT_NAMESPACE
    status: tuple[str, ...] = ()
    kind: Kind | None = None
    task: str | None = None
    queue: str | None = None
    tag: str | None = None
    key: str | None = None
    prefix: str | None = None
    region: str | None = None
    created_by: str | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    next_before: Instant | None = None
    payload: tuple[tuple[str, str], ...] = ()
    ended_since: Instant | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list holds; None means any. `start` and `end` bound `scheduled_at`: start included, end not.
    `error` is a text that the error contains."""

    namespace: str = DEFAULT_NAMESPACE
    status: tuple[str, ...] = ()
    job_id: UUID | None = None
    task: str | None = None
    queue: str | None = None
    worker: UUID | None = None
    tag: str | None = None
    reason: str | None = None
    error: str | None = None
    start: Instant | None = None
    end: Instant | None = None
    after_id: UUID | None = field(default=None)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as readers see it: its row of `jobs`, or the runs by which a one-time job is known.

    `status` is a user's word: the job's own, or that of its newest run.
    """

    job: Job
    status: str
    reason: str | None = None
    last_run: Run | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of what is live, cheap to take; nothing here counts history."""

    by_status: dict[str, int]
    queues: tuple[QueueInfo, ...]
    workers: int
    schedulers: int
    oldest_ready_at: Instant | None
    next_fire_at: Instant | None
    dead_letters: int
