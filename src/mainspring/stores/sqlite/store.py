"""The store in one SQLite file. Each verb is one closure: those that write go to one thread, those that read to others."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
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
    Signs,
    Submitted,
)
from mainspring.stores.sqlite import changing, forks, keeping, listing, living, scheduling, submitting, working
from mainspring.stores.sqlite.connection import BUSY_SECONDS, File
from mainspring.stores.sqlite.engine import Engine
from mainspring.stores.sqlite.hub import Hub
from mainspring.stores.sqlite.migrating import SqliteMigrations
from mainspring.stores.sqlite.session import MachineClock, Session
from mainspring.stores.sqlite.signs import SignFiles
from mainspring.stores.sqlite.timetables import TimetableVerbs

T = TypeVar("T")
READERS = 2

CAPABILITIES = Capabilities(name="sqlite", process_signs=True, session_signs=False, hints=True, durable=True)


class SqliteStore(TimetableVerbs):
    """One file, any number of processes on one machine.

    SQLite keeps its locks in the memory of the process, so no connection may be open across a fork: before one, the
    store lets its verbs finish and closes; afterwards parent and child open again at their next verb.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        readers: int = READERS,
        journal: str | None = None,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self._file = File(path, journal=journal, busy_seconds=busy_seconds)
        self._readers = readers
        self._hub = Hub()
        self._signs = SignFiles(self._file.locks)
        self._migrations = SqliteMigrations(self._file)
        self._clock = MachineClock()
        self._engine: Engine | None = None
        self._opened = False
        self._opening = threading.Lock()
        forks.watch(self)

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @property
    def migrations(self) -> SqliteMigrations:
        return self._migrations

    @property
    def wal(self) -> bool:
        """Whether readers and the writer go on without waiting for each other; known once the store is open."""
        return self._file.wal

    async def open(self) -> None:
        self._opened = True
        await self._ready()

    async def close(self) -> None:
        self._opened = False
        await asyncio.to_thread(self._stop)
        await asyncio.to_thread(self._signs.release)

    async def now(self) -> Instant:
        return self._clock.now()

    def subscribe(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        stop = self._hub.add(asyncio.get_running_loop(), listener)
        if self._engine is not None:
            self._engine.wake()
        return stop

    async def _ready(self) -> Engine:
        """The engine of this process, which a fork may have put to rest."""
        engine = self._engine
        if engine is not None:
            return engine
        if not self._opened:
            raise StoreUnavailable(f"{self._file.where} is not open; call open() before the first verb")
        return await asyncio.to_thread(self._start)

    def _start(self) -> Engine:
        with self._opening:
            if self._engine is None:
                self._file.check_library()
                self._migrations.check()
                where, readers, clock = self._file.where, self._readers, self._clock
                engine = Engine(where, self._file.open_writer, self._file.open_reader, readers, self._hub, clock)
                engine.start()
                self._engine = engine
            return self._engine

    def _stop(self) -> None:
        with self._opening:
            self._let_go()

    def _let_go(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.stop()

    def before_fork(self) -> None:
        """Nobody opens until the fork is over."""
        self._opening.acquire()
        self._let_go()

    def after_fork(self, *, child: bool) -> None:
        """Who listened in the parent does not listen in the child."""
        if child:
            self._hub.clear()
        self._opening.release()

    async def write(self, work: Callable[[Session], T], quiet: Callable[[Session], T | None] | None = None) -> T:
        """One transaction; where `quiet` knows the answer without one, none."""
        return await (await self._ready()).write(work, quiet)

    async def read(self, work: Callable[[Session], T]) -> T:
        """On one snapshot."""
        return await (await self._ready()).read(work)

    # --- submitting

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        return await self.write(partial(submitting.submit, jobs=jobs, repeat=repeat, now=now))

    async def find_key(self, key: str, namespace: str = "default") -> UUID | None:
        return await self.read(partial(submitting.key_holder, key=key, namespace=namespace))

    # --- jobs

    async def jobs(self, ids: Sequence[UUID]) -> list[JobView | None]:
        return await self.read(lambda session: [listing.job_view(session, job_id) for job_id in ids])

    async def list_jobs(self, where: JobFilter, *, after: UUID | None = None, limit: int = 50) -> list[JobView]:
        return await self.read(partial(listing.list_jobs, where=where, after=after, limit=limit))

    async def change(self, edit: JobEdit, *, now: Instant | None = None) -> Job | None:
        return await self.write(partial(changing.change, edit=edit, now=now))

    async def cancel(
        self, ids: Sequence[UUID], *, delete: bool = False, by: str | None = None, now: Instant | None = None
    ) -> list[CancelOutcome]:
        del by  # the audit is written by who asked
        return await self.write(partial(changing.cancel, ids=ids, delete=delete, now=now))

    async def add_runs(
        self,
        runs: Sequence[NewRun],
        *,
        respect_overlap: bool = False,
        redeem_dead_letters: bool = False,
        now: Instant | None = None,
    ) -> list[Run]:
        work = partial(
            changing.add_runs,
            runs=runs,
            respect_overlap=respect_overlap,
            redeem_dead_letters=redeem_dead_letters,
            now=now,
        )
        return await self.write(work)

    # --- runs

    async def runs(self, ids: Sequence[UUID]) -> list[Run | None]:
        return await self.read(lambda session: [listing.find_run(session, run_id) for run_id in ids])

    async def list_runs(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        return await self.read(partial(listing.list_runs, where=where, limit=limit))

    async def retry_now(self, run_id: UUID, *, now: Instant | None = None) -> bool:
        return await self.write(partial(changing.retry_now, run_id=run_id, now=now))

    async def resolve(
        self, run_id: UUID, state: int, *, note: str | None = None, by: str | None = None, now: Instant | None = None
    ) -> bool:
        del by  # the audit is written by who asked
        return await self.write(partial(changing.resolve, run_id=run_id, state=state, note=note, now=now))

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        await self.write(partial(keeping.append_logs, lines=lines))

    async def logs(self, run_id: UUID, *, after: int = 0, limit: int = 1000) -> list[tuple[int, LogLine]]:
        return await self.read(partial(keeping.logs, run_id=run_id, after=after, limit=limit))

    async def dead_letters(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        return await self.read(partial(listing.dead_letters, where=where, limit=limit))

    async def discard_dead_letters(self, ids: Sequence[UUID], *, by: str | None = None) -> list[bool]:
        del by  # the audit is written by who asked
        return await self.write(partial(changing.discard_dead_letters, ids=ids))

    # --- working

    async def register(self, worker: WorkerInfo, tasks: Sequence[TaskInfo], *, now: Instant | None = None) -> Instant:
        return await self.write(partial(living.register, worker=worker, tasks=tasks, now=now))

    async def known_tasks(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[TaskInfo]:
        return await self.read(partial(living.known_tasks, names=names, namespace=namespace))

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
        claim = working.Claim(
            worker,
            tasks,
            queues,
            count=count,
            suspects=suspects,
            bytes_max=bytes_max,
            namespace=namespace,
            now=now,
        )
        return await self.write(claim.take, claim.nothing_ready)

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        return await self.write(partial(working.finish, worker=worker, endings=endings, now=now))

    async def progress(self, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
        return await self.write(partial(working.progress, worker=worker, items=items))

    async def beat(
        self, workers: Sequence[UUID], *, keeper: UUID | None = None, now: Instant | None = None
    ) -> list[BeatAnswer]:
        del keeper  # a beat only reads: the lock of the process says that it lives
        return await self.read(partial(living.beat, workers=workers, now=now))

    async def drain(self, worker: UUID) -> bool:
        return await self.write(partial(living.drain, worker=worker))

    async def deregister(self, worker: UUID, *, now: Instant | None = None) -> None:
        await self.write(partial(living.deregister, worker=worker, now=now))

    async def workers(self, *, lost: bool = False) -> list[WorkerInfo]:
        return await self.read(partial(living.workers, lost=lost))

    # --- signs of life

    async def hold_sign(self, identity: UUID) -> None:
        await asyncio.to_thread(self._signs.hold, identity)

    async def signs(self, identities: Sequence[UUID]) -> Signs:
        return self._signs.look(identities)

    async def declare_lost(
        self,
        worker: UUID,
        evidence: Evidence,
        *,
        beat: int | None = None,
        culprit: UUID | None = None,
        now: Instant | None = None,
    ) -> bool:
        work = partial(living.declare_lost, worker=worker, evidence=evidence, beat=beat, culprit=culprit, now=now)
        return await self.write(work)

    async def rescue(self, *, limit: int = 500, random_value: float = 0.5, now: Instant | None = None) -> list[Rescued]:
        work = partial(living.rescue, limit=limit, random_value=random_value, now=now)
        return await self.write(work, living.nothing_to_rescue)

    # --- scheduling

    async def scheduler_beat(
        self, scheduler: UUID, *, host: str, silent_after: Duration, now: Instant | None = None
    ) -> list[UUID]:
        work = partial(living.scheduler_beat, scheduler=scheduler, host=host, silent_after=silent_after, now=now)
        return await self.write(work)

    async def scheduler_stop(self, scheduler: UUID) -> None:
        await self.write(partial(living.scheduler_stop, scheduler=scheduler))

    async def schedulers(
        self, *, silent_after: Duration, now: Instant | None = None
    ) -> list[tuple[UUID, str, Instant]]:
        return await self.read(partial(living.schedulers, silent_after=silent_after, now=now))

    async def due_jobs(self, shards: Sequence[int] | None, *, until: Instant, limit: int = 5000) -> list[Job]:
        return await self.read(partial(scheduling.due_jobs, shards=shards, until=until, limit=limit))

    async def coming_jobs(
        self, shards: Sequence[int] | None, *, after: tuple[Instant, UUID] | None, until: Instant, limit: int = 5000
    ) -> list[Job]:
        work = partial(scheduling.coming_jobs, shards=shards, after=after, until=until, limit=limit)
        return await self.read(work)

    async def fire(self, firings: Sequence[Firing], *, now: Instant | None = None) -> list[Fired]:
        return await self.write(partial(scheduling.fire, firings=firings, now=now))

    async def promote(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        work = partial(scheduling.promote, limit=limit, now=now)
        return await self.write(work, partial(scheduling.nothing_to_promote, now=now))

    async def expire(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        work = partial(scheduling.expire, limit=limit, now=now)
        return await self.write(work, partial(scheduling.nothing_to_expire, now=now))

    async def next_wake(self) -> Instant | None:
        return await self.read(scheduling.next_wake)

    async def upkeep(self, *, history_days: int = 30, log_days: int = 7, now: Instant | None = None) -> dict[str, int]:
        await asyncio.to_thread(self._signs.remove_dead)
        return await self.write(partial(keeping.upkeep, history_days=history_days, log_days=log_days, now=now))

    # --- queues, idempotency, numbers

    async def queues(self, namespace: str = "default") -> list[QueueInfo]:
        return await self.read(partial(keeping.queues, namespace=namespace))

    async def pause_queue(self, name: str, paused: bool, namespace: str = "default") -> QueueInfo:  # noqa: FBT001 - the port's
        return await self.write(partial(keeping.pause_queue, name=name, namespace=namespace, paused=paused))

    async def set_queue_limits(self, name: str, limits: str | None, namespace: str = "default") -> QueueInfo:
        return await self.write(partial(keeping.set_queue_limits, name=name, limits=limits, namespace=namespace))

    async def purge_queue(self, name: str, namespace: str = "default", *, now: Instant | None = None) -> int:
        return await self.write(partial(changing.purge_queue, name=name, namespace=namespace, now=now))

    async def begin_idempotent(
        self, key: str, body_hash: bytes, *, namespace: str = "default", now: Instant | None = None
    ) -> IdempotentAnswer:
        work = partial(keeping.begin_idempotent, key=key, body_hash=body_hash, namespace=namespace, now=now)
        return await self.write(work)

    async def end_idempotent(self, key: str, status: int, body: bytes, *, namespace: str = "default") -> None:
        await self.write(partial(keeping.end_idempotent, key=key, status=status, body=body, namespace=namespace))

    async def forget_idempotent(self, key: str, *, namespace: str = "default") -> None:
        await self.write(partial(keeping.forget_idempotent, key=key, namespace=namespace))

    async def stats(self, namespace: str = "default") -> Stats:
        return await self.read(partial(keeping.stats, namespace=namespace))
