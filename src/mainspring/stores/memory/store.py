"""The store in memory: every verb runs to its end without giving way, so it is one transaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from mainspring.core.model import (
    BeatAnswer,
    Claimed,
    Duration,
    Ending,
    Evidence,
    Firing,
    Instant,
    Job,
    JobFilter,
    JobView,
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
from mainspring.ports.store import (
    CancelOutcome,
    Capabilities,
    Fired,
    Hint,
    IdempotentAnswer,
    JobEdit,
    NewRun,
    Rescued,
    Sign,
    Signs,
    Submitted,
)
from mainspring.stores.memory import changing, firing, keeping, listing, living, submitting, working
from mainspring.stores.memory.tables import Tables
from mainspring.stores.memory.timetables import TimetableVerbs

Listener = Callable[[Hint], None]


class NoMigrations:
    """There is no schema to migrate."""

    async def status(self) -> list[tuple[str, bool]]:
        return []

    async def up(self) -> list[str]:
        return []

    def sql(self) -> str:
        return ""


class Memory:
    """What several handles share, as programs share a database."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.listeners: dict[int, Listener] = {}
        self.subscriptions = 0
        self.epoch = 1

    def drop_signs(self) -> None:
        self.tables.signs.clear()
        self.epoch += 1


class MemoryStore(TimetableVerbs):
    """One handle; given the `memory` of another it sees the same rows and signs, as a second program would.

    `process_signs` makes it behave like a store whose signs of life are locks of the operating system: beats only
    read. `deliver` hands one hint to one listener and may be replaced to lose, double or reorder hints.
    """

    def __init__(
        self,
        now: Callable[[], Instant] | None = None,
        *,
        memory: Memory | None = None,
        process_signs: bool = False,
    ) -> None:
        self._clock = now or _system_clock
        self.memory = memory or Memory()
        self._tables = self.memory.tables
        self._held: dict[UUID, None] = {}
        self._own_listeners: dict[int, None] = {}
        self.deliver: Callable[[Listener, Hint], None] = _soon
        self._capabilities = Capabilities(
            name="memory", process_signs=process_signs, session_signs=not process_signs, hints=True, durable=False
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def migrations(self) -> NoMigrations:
        return NoMigrations()

    async def open(self) -> None:
        self.reconnect()

    async def close(self) -> None:
        for identity in self._held:
            self._tables.signs.pop(identity, None)
        self._held.clear()
        for number in self._own_listeners:
            self.memory.listeners.pop(number, None)
        self._own_listeners.clear()

    async def now(self) -> Instant:
        return self._clock()

    # --- for tests and the simulation

    def drop_sign(self, identity: UUID) -> None:
        """The process that held it is gone."""
        self._held.pop(identity, None)
        self._tables.signs.pop(identity, None)

    def stop_sign(self, identity: UUID, *, stopped: bool = True) -> None:
        """The process that holds it is stopped, or goes on."""
        if identity in self._tables.signs:
            self._tables.signs[identity] = Sign.STOPPED if stopped else Sign.HELD

    def restart(self) -> None:
        """The server was restarted: another epoch, and session signs fall for the living too until they reconnect."""
        if self._capabilities.process_signs:
            self.memory.epoch += 1
        else:
            self.memory.drop_signs()

    def reconnect(self) -> None:
        """This handle shows again what it showed before the restart."""
        for identity in self._held:
            self._tables.signs[identity] = Sign.HELD

    # --- hints

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        memory = self.memory
        memory.subscriptions += 1
        number = memory.subscriptions
        memory.listeners[number] = listener
        self._own_listeners[number] = None

        def stop() -> None:
            memory.listeners.pop(number, None)
            self._own_listeners.pop(number, None)

        return stop

    def _publish(self) -> None:
        hints = self._tables.hints
        if not hints:
            return
        for hint in hints:
            for listener in self.memory.listeners.values():
                self.deliver(listener, hint)
        hints.clear()

    def _instant(self, now: Instant | None) -> Instant:
        return self._clock() if now is None else now

    # --- submitting

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        answer = submitting.submit(self._tables, jobs, repeat=repeat, now=self._instant(now))
        self._publish()
        return answer

    async def find_key(self, key: str, namespace: str = "default") -> UUID | None:
        return self._tables.holder(namespace, key)

    # --- jobs

    async def jobs(self, ids: Sequence[UUID]) -> list[JobView | None]:
        return [listing.job_view(self._tables, job_id) for job_id in ids]

    async def list_jobs(self, where: JobFilter, *, after: UUID | None = None, limit: int = 50) -> list[JobView]:
        return listing.list_jobs(self._tables, where, after, limit)

    async def change(self, edit: JobEdit, *, now: Instant | None = None) -> Job | None:
        answer = changing.change(self._tables, edit, self._instant(now))
        self._publish()
        return answer

    async def cancel(
        self, ids: Sequence[UUID], *, delete: bool = False, by: str | None = None, now: Instant | None = None
    ) -> list[CancelOutcome]:
        del by  # there is no audit in memory
        answer = changing.cancel(self._tables, ids, delete=delete, now=self._instant(now))
        self._publish()
        return answer

    async def add_runs(
        self,
        runs: Sequence[NewRun],
        *,
        respect_overlap: bool = False,
        redeem_dead_letters: bool = False,
        now: Instant | None = None,
    ) -> list[Run]:
        made = changing.add_runs(
            self._tables,
            runs,
            respect_overlap=respect_overlap,
            redeem_dead_letters=redeem_dead_letters,
            now=self._instant(now),
        )
        self._publish()
        return [listing.shown_run(self._tables, run) for run in made]

    # --- runs

    async def runs(self, ids: Sequence[UUID]) -> list[Run | None]:
        return listing.runs(self._tables, ids)

    async def list_runs(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        return listing.list_runs(self._tables, where, limit)

    async def retry_now(self, run_id: UUID, *, now: Instant | None = None) -> bool:
        answer = changing.retry_now(self._tables, run_id, self._instant(now))
        self._publish()
        return answer

    async def resolve(
        self, run_id: UUID, state: int, *, note: str | None = None, by: str | None = None, now: Instant | None = None
    ) -> bool:
        del by  # there is no audit in memory
        answer = changing.resolve(self._tables, run_id, state, note, self._instant(now))
        self._publish()
        return answer

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        keeping.append_logs(self._tables, lines)

    async def logs(self, run_id: UUID, *, after: int = 0, limit: int = 1000) -> list[tuple[int, LogLine]]:
        return keeping.logs(self._tables, run_id, after, limit)

    async def dead_letters(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        return listing.dead_letters(self._tables, where, limit)

    async def discard_dead_letters(self, ids: Sequence[UUID], *, by: str | None = None) -> list[bool]:
        del by  # there is no audit in memory
        return [self._tables.dead_letters.pop(run_id, None) is not None for run_id in ids]

    # --- working

    async def register(self, worker: WorkerInfo, tasks: Sequence[TaskInfo], *, now: Instant | None = None) -> Instant:
        answer = living.register(self._tables, worker, tasks, self._instant(now))
        self._publish()
        return answer

    async def known_tasks(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[TaskInfo]:
        tasks = self._tables.tasks
        known = sorted(name for of_namespace, name in tasks if of_namespace == namespace)
        return [tasks[namespace, name] for name in known if names is None or name in names]

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
        row = self._tables.workers.get(worker)
        if row is None or row.info.lost_at is not None:
            return []
        claim = working.Claim(self._tables, tasks=tasks, queues=queues, suspects=suspects, namespace=namespace)
        return claim.take(worker, count, bytes_max, self._instant(now))

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        answer = working.finish(self._tables, worker, endings, self._instant(now))
        self._publish()
        return answer

    async def progress(self, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
        return working.progress(self._tables, worker, items)

    async def beat(
        self, workers: Sequence[UUID], *, keeper: UUID | None = None, now: Instant | None = None
    ) -> list[BeatAnswer]:
        read_only = self._capabilities.process_signs
        return living.beat(self._tables, workers, keeper, self._instant(now), read_only=read_only)

    async def drain(self, worker: UUID) -> bool:
        answer = living.drain(self._tables, worker)
        self._publish()
        return answer

    async def deregister(self, worker: UUID, *, now: Instant | None = None) -> None:
        living.deregister(self._tables, worker, self._instant(now))

    async def workers(self, *, lost: bool = False) -> list[WorkerInfo]:
        return living.workers(self._tables, lost=lost)

    # --- signs of life

    async def hold_sign(self, identity: UUID) -> None:
        self._held[identity] = None
        self._tables.signs[identity] = Sign.HELD

    async def signs(self, identities: Sequence[UUID]) -> Signs:
        seen = {identity: self._tables.signs.get(identity, Sign.FREE) for identity in identities}
        return Signs(f"epoch-{self.memory.epoch}", seen)

    async def declare_lost(
        self,
        worker: UUID,
        evidence: Evidence,
        *,
        beat: int | None = None,
        culprit: UUID | None = None,
        now: Instant | None = None,
    ) -> bool:
        instant = self._instant(now)
        answer = living.declare_lost(self._tables, worker, evidence, beat=beat, culprit=culprit, now=instant)
        self._publish()
        return answer

    async def rescue(self, *, limit: int = 500, random_value: float = 0.5, now: Instant | None = None) -> list[Rescued]:
        answer = living.rescue(self._tables, limit, random_value, self._instant(now))
        self._publish()
        return answer

    # --- scheduling

    async def scheduler_beat(
        self, scheduler: UUID, *, host: str, silent_after: Duration, now: Instant | None = None
    ) -> list[UUID]:
        return living.scheduler_beat(self._tables, scheduler, host, silent_after, self._instant(now))

    async def scheduler_stop(self, scheduler: UUID) -> None:
        self._tables.schedulers.pop(scheduler, None)

    async def schedulers(
        self, *, silent_after: Duration, now: Instant | None = None
    ) -> list[tuple[UUID, str, Instant]]:
        return living.schedulers(self._tables, silent_after, self._instant(now))

    async def due_jobs(self, shards: Sequence[int] | None, *, until: Instant, limit: int = 5000) -> list[Job]:
        return firing.due_jobs(self._tables, shards, until, limit)

    async def coming_jobs(
        self, shards: Sequence[int] | None, *, after: tuple[Instant, UUID] | None, until: Instant, limit: int = 5000
    ) -> list[Job]:
        return firing.coming_jobs(self._tables, shards, after, until, limit)

    async def fire(self, firings: Sequence[Firing], *, now: Instant | None = None) -> list[Fired]:
        instant = self._instant(now)
        answer = [firing.fire(self._tables, one, instant) for one in firings]
        self._publish()
        return answer

    async def promote(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        answer = firing.promote(self._tables, limit, self._instant(now))
        self._publish()
        return answer

    async def expire(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        answer = firing.expire(self._tables, limit, self._instant(now))
        self._publish()
        return answer

    async def next_wake(self) -> Instant | None:
        return self._tables.next_wake()

    async def upkeep(self, *, history_days: int = 30, log_days: int = 7, now: Instant | None = None) -> dict[str, int]:
        return keeping.upkeep(self._tables, history_days, log_days, self._instant(now))

    # --- queues, idempotency, numbers

    async def queues(self, namespace: str = "default") -> list[QueueInfo]:
        return keeping.queues(self._tables, namespace)

    async def pause_queue(self, name: str, *, paused: bool, namespace: str = "default") -> QueueInfo:
        keeping.set_paused(self._tables, name, namespace, paused=paused)
        self._publish()
        return keeping.queue(self._tables, name, namespace)

    async def set_queue_limits(self, name: str, limits: str | None, namespace: str = "default") -> QueueInfo:
        keeping.set_limits(self._tables, name, namespace, limits)
        return keeping.queue(self._tables, name, namespace)

    async def purge_queue(self, name: str, namespace: str = "default", *, now: Instant | None = None) -> int:
        answer = changing.purge_queue(self._tables, name, namespace, self._instant(now))
        self._publish()
        return answer

    async def begin_idempotent(
        self, key: str, body_hash: bytes, *, namespace: str = "default", now: Instant | None = None
    ) -> IdempotentAnswer:
        return keeping.begin_idempotent(self._tables, key, body_hash, namespace, self._instant(now))

    async def end_idempotent(self, key: str, status: int, body: bytes, *, namespace: str = "default") -> None:
        keeping.end_idempotent(self._tables, key, status, body, namespace)

    async def forget_idempotent(self, key: str, *, namespace: str = "default") -> None:
        self._tables.idempotency.pop((namespace, key), None)

    async def stats(self, namespace: str = "default") -> Stats:
        return keeping.stats(self._tables, namespace)


def _soon(listener: Listener, hint: Hint) -> None:
    asyncio.get_running_loop().call_soon(listener, hint)


def _system_clock() -> Instant:
    return time.time_ns() // 1_000
