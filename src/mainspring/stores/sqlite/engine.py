"""Threads with connections: one that writes, some that read. A verb costs one hop to a thread and one hop back.

Verbs that wait at the same time share one transaction and one flush, each in a savepoint of its own, so that one that
fails takes no other with it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from mainspring.core.errors import StoreUnavailable
from mainspring.ports.store import Hint, Topic
from mainspring.stores.sqlite.driver import explain, sqlite3
from mainspring.stores.sqlite.hub import Hub, Outbox
from mainspring.stores.sqlite.rows import uuid_of
from mainspring.stores.sqlite.session import SQL, MachineClock, Session

T = TypeVar("T")
Opener = Callable[[], sqlite3.Connection]

GROUP_MAX = 64
POLL_IDLE_SECONDS = 0.025
POLL_BUSY_SECONDS = 0.005
BUSY_FOR_SECONDS = 1.0


class Signal(Enum):
    STOP = "stop"
    NUDGE = "nudge"  # somebody listens now


class Task(Protocol):
    """A verb on its way through a thread."""

    loop: asyncio.AbstractEventLoop

    def answer_quietly(self, session: Session) -> bool: ...

    def run(self, session: Session) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    @property
    def failed(self) -> bool: ...

    def settle(self) -> None: ...


class Verb(Generic[T]):
    """A closure, and the future that waits for what it returns. `quiet` answers without a transaction, or says None."""

    __slots__ = ("_error", "_future", "_quiet", "_result", "_work", "loop")

    def __init__(self, work: Callable[[Session], T], quiet: Callable[[Session], T | None] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self._work = work
        self._quiet = quiet
        self._future: asyncio.Future[T] = self.loop.create_future()
        self._result: list[T] = []
        self._error: BaseException | None = None

    async def result(self) -> T:
        return await self._future

    def answer_quietly(self, session: Session) -> bool:
        answer = None if self._quiet is None else self._quiet(session)
        if answer is not None:
            self._result.append(answer)
        return answer is not None

    def run(self, session: Session) -> None:
        self._result.append(self._work(session))

    def fail(self, error: BaseException) -> None:
        self._error = error

    @property
    def failed(self) -> bool:
        return self._error is not None

    def settle(self) -> None:
        if self._future.done():
            return  # who waited was cancelled; the work stands
        if self._error is not None:
            self._future.set_exception(self._error)
        else:
            self._future.set_result(self._result[0])


class Thread:
    """A thread that serves a queue of verbs until it is stopped; it never keeps the program alive."""

    def __init__(self, name: str, tasks: SimpleQueue[Task | Signal], opener: Opener, clock: MachineClock) -> None:
        self._tasks = tasks
        self._opener = opener
        self._clock = clock
        self._opened: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Raises what opening the connection raised."""
        self._thread.start()
        error = self._opened.get()
        if error is not None:
            raise error

    def join(self) -> None:
        self._thread.join()

    def _main(self) -> None:
        try:
            connection = self._opener()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that opens the store
            self._opened.put(error)
            return
        session = Session(connection, self._clock)
        self._opened.put(None)
        try:
            self._serve(session)
        finally:
            connection.close()

    def _serve(self, session: Session) -> None:
        """Until told to stop."""
        raise AssertionError(f"{session} is read or written by a thread of a kind")


class Reader(Thread):
    """Runs verbs that only read, each on one snapshot."""

    def __init__(
        self, name: str, tasks: SimpleQueue[Task | Signal], opener: Opener, clock: MachineClock, where: str
    ) -> None:
        super().__init__(name, tasks, opener, clock)
        self._where = where

    def _serve(self, session: Session) -> None:
        while not isinstance(task := self._tasks.get(), Signal):
            try:
                session.connection.execute(SQL["begin_reading"])
                task.run(session)
            except BaseException as error:  # noqa: BLE001 - it is raised where the verb was called
                task.fail(_ours(error, self._where))
            finally:
                _roll_back(session)
            outbox = Outbox()
            outbox.add(task.loop, task.settle)
            outbox.send()


class Writer(Thread):
    """The only connection of this process that writes."""

    def __init__(
        self, tasks: SimpleQueue[Task | Signal], opener: Opener, clock: MachineClock, hub: Hub, where: str
    ) -> None:
        super().__init__("mainspring-sqlite-writer", tasks, opener, clock)
        self._hub = hub
        self._where = where
        self._version = 0
        self._looked_at = 0.0
        self._busy_until = 0.0

    def _serve(self, session: Session) -> None:
        stopping = False
        with suppress(sqlite3.Error):
            self._version = _data_version(session)
        while not stopping:
            group, stopping = self._next_group(session)
            while group and self._answered_quietly(session, group[0]):
                group.pop(0)
            if group:
                self._write(session, group)

    def _next_group(self, session: Session) -> tuple[list[Task], bool]:
        """Waits for verbs and takes all that wait, looking meanwhile whether other processes wrote."""
        group: list[Task] = []
        while not group:
            self._look_abroad(session)
            try:
                task = self._tasks.get(timeout=self._poll_seconds() if self._hub else None)
            except Empty:
                continue
            if task is Signal.STOP:
                return group, True
            if not isinstance(task, Signal):
                group.append(task)
        while len(group) < GROUP_MAX:
            try:
                task = self._tasks.get_nowait()
            except Empty:
                break
            if task is Signal.STOP:
                return group, True
            if not isinstance(task, Signal):
                group.append(task)
        return group, False

    def _poll_seconds(self) -> float:
        return POLL_BUSY_SECONDS if self._looked_at < self._busy_until else POLL_IDLE_SECONDS

    def _look_abroad(self, session: Session) -> None:
        """`data_version` changes when another connection has committed, never by what this one does."""
        now = time.monotonic()
        if not self._hub or now - self._looked_at < self._poll_seconds() * 0.9:
            return
        self._looked_at = now
        try:
            version = _data_version(session)
            if version != self._version:
                self._version = version
                calls = _who_is_called(session)
                if calls:  # the beats of other programs alone must not keep this one from resting
                    self._busy_until = now + BUSY_FOR_SECONDS
                outbox = Outbox()
                self._hub.address([*calls, Hint(Topic.JOBS)], outbox)
                outbox.send()
        except sqlite3.Error:
            return  # the next verb will tell why

    def _answered_quietly(self, session: Session, task: Task) -> bool:
        try:
            answered = task.answer_quietly(session)
        except BaseException as error:  # noqa: BLE001 - it is raised where the verb was called
            task.fail(_ours(error, self._where))
            answered = True
        if answered:
            self._deliver([task], ())
        return answered

    def _write(self, session: Session, group: Sequence[Task]) -> None:
        hints: dict[Hint, None] = {}
        committing = False
        try:
            session.connection.execute(SQL["begin_writing"])
            if len(group) == 1:
                session.hints = hints
                group[0].run(session)
            else:
                for task in group:
                    hints.update(self._run_in_savepoint(session, task))
            committing = True
            session.connection.execute(SQL["commit"])
        except BaseException as error:  # noqa: BLE001 - it is raised where the verbs were called
            _roll_back(session)
            session.forget()
            hints.clear()
            ours = _ours(error, self._where, committing=committing)
            for task in group:
                if not task.failed:
                    task.fail(ours)
        self._deliver(group, hints)

    def _run_in_savepoint(self, session: Session, task: Task) -> dict[Hint, None]:
        session.hints = {}
        session.connection.execute(SQL["savepoint_verb"])
        try:
            task.run(session)
        except BaseException as error:
            if not session.connection.in_transaction:
                raise  # SQLite itself has undone the whole transaction: a full disk, a failing one
            session.connection.execute(SQL["rollback_verb"])
            session.forget()
            session.hints = {}
            task.fail(_ours(error, self._where))
        session.connection.execute(SQL["release_verb"])
        return session.hints

    def _deliver(self, group: Sequence[Task], hints: Sequence[Hint] | dict[Hint, None]) -> None:
        outbox = Outbox()
        if hints:
            self._hub.address(hints, outbox)
        for task in group:
            outbox.add(task.loop, task.settle)
        outbox.send()


class Engine:
    """The threads of one process on one file."""

    def __init__(
        self, where: str, open_writer: Opener, open_reader: Opener, readers: int, hub: Hub, clock: MachineClock
    ) -> None:
        self._writes: SimpleQueue[Task | Signal] = SimpleQueue()
        self._reads: SimpleQueue[Task | Signal] = SimpleQueue()
        self._writer = Writer(self._writes, open_writer, clock, hub, where)
        self._readers = [
            Reader(f"mainspring-sqlite-reader-{number}", self._reads, open_reader, clock, where)
            for number in range(readers)
        ]
        self._started: list[Thread] = []
        self._where = where
        self._gate = threading.Lock()
        self.closed = False

    def start(self) -> None:
        try:
            for thread in (self._writer, *self._readers):
                thread.start()
                self._started.append(thread)
        except sqlite3.Error as error:
            self.stop()
            raise _ours(error, self._where) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Lets what is queued finish, then ends the threads; blocks until they have."""
        with self._gate:
            self.closed = True
            self._writes.put(Signal.STOP)
            for _ in self._readers:
                self._reads.put(Signal.STOP)
        for thread in self._started:
            thread.join()
        self._started.clear()

    async def write(self, work: Callable[[Session], T], quiet: Callable[[Session], T | None] | None = None) -> T:
        return await self._send(self._writes, Verb(work, quiet))

    async def read(self, work: Callable[[Session], T]) -> T:
        return await self._send(self._reads, Verb(work))

    def wake(self) -> None:
        """Lets the writer notice that somebody listens now."""
        self._writes.put(Signal.NUDGE)

    async def _send(self, tasks: SimpleQueue[Task | Signal], verb: Verb[T]) -> T:
        with self._gate:  # nothing is queued behind the word to stop
            if self.closed:
                raise StoreUnavailable(f"{self._where} is being closed; open the store before you use it")
            tasks.put(verb)
        return await verb.result()


def _data_version(session: Session) -> int:
    (version,) = session.row("data_version") or (0,)
    return version


def _who_is_called(session: Session) -> list[Hint]:
    """Another process wrote, nobody knows what: everything that may wait for a worker."""
    hints = [Hint(Topic.READY, queue) for (queue,) in session.run("queues_with_work")]
    hints += [Hint(Topic.WORKER, str(uuid_of(worker))) for (worker,) in session.run("workers_with_orders")]
    return hints


def _roll_back(session: Session) -> None:
    if session.connection.in_transaction:
        with suppress(sqlite3.Error):  # SQLite may have undone it by itself in the meantime
            session.connection.execute(SQL["rollback"])


def _ours(error: BaseException, where: str, *, committing: bool = False) -> BaseException:
    if isinstance(error, sqlite3.Error):
        return explain(error, where, committing=committing) or error
    return error
