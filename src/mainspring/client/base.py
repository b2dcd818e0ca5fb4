"""What all calls of the client stand on: the store, its time, ids, what is known of tasks, and how to send."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from mainspring.client.identity import DerivedIds, IdMaker, Ids, parent_of_key
from mainspring.client.submission import Request
from mainspring.core.calendars import Calendar
from mainspring.core.errors import (
    BacklogFull,
    CallerError,
    Conflict,
    InvalidInput,
    Problem,
    StoreUnavailable,
    WorldError,
)
from mainspring.core.fields import PROBLEMS_MAX, nearest
from mainspring.core.model import DEFAULT_NAMESPACE, Instant, Job, Kind, NewJob, QueueInfo, TaskInfo
from mainspring.core.occurrences import NO_CALENDARS
from mainspring.observe.events import Bus, JobsChanged, JobsSubmitted
from mainspring.ports.calendar_book import CalendarBook, names_calendar
from mainspring.ports.clock import Clock
from mainspring.ports.store import Store, Submitted
from mainspring.ports.store_time import StoreTime
from mainspring.tasks.signature import check_payload

Act = Callable[[Ids | None], Awaitable[tuple[int, bytes]]]

_FIRST_MEASUREMENTS = 3
_BACKOFF_FIRST_SECONDS = 0.05
_BACKOFF_MAX_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """`patience`: how many seconds a send that met an unreachable store is tried again."""

    namespace: str = DEFAULT_NAMESPACE
    strict_tasks: bool = False
    misfire: str | None = None
    ready_limit: int | None = None
    created_by: str | None = None
    patience: float = 2.5


class StillInFlight(Conflict):
    """Another try of the same request has not ended; asking again soon gets its answer."""

    title = "The same request is still in flight"


class KnownTasks:
    """What workers registered, remembered for a second; a name that is missing is looked up again sooner."""

    def __init__(self, store: Store, clock: Clock, namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._namespace = namespace
        self._tasks: dict[str, TaskInfo] = {}
        self._defaults: dict[str, Mapping[str, object] | None] = {}
        self._fresh_until = self._missing_until = float("-inf")

    async def find(self, names: Sequence[str]) -> Mapping[str, TaskInfo]:
        now = self._clock.monotonic()
        missing = any(name not in self._tasks for name in names)
        if now >= (self._missing_until if missing else self._fresh_until):
            found = await self._store.known_tasks(namespace=self._namespace)
            self._tasks = {task.name: task for task in found}
            self._defaults = {}
            self._fresh_until, self._missing_until = now + 1.0, now + 0.05
        return self._tasks

    def signature(self, name: str) -> str | None:
        """What its arguments look like, if workers said so; `find` first."""
        task = self._tasks.get(name)
        return None if task is None else task.signature

    def defaults(self, name: str) -> Mapping[str, object] | None:
        """What the decorator of the task sets, if workers said so; `find` first."""
        if name not in self._defaults:
            task = self._tasks.get(name)
            text = None if task is None else task.defaults
            self._defaults[name] = msgspec.json.decode(text, type=dict[str, object]) if text else None
        return self._defaults[name]


class Backlog:
    """Refuses submissions to a queue that holds more than its bound; costs nothing where there is none."""

    FRESH_SECONDS = 0.25

    def __init__(self, store: Store, clock: Clock, settings: ClientSettings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._counts: dict[str, int] = {}
        self._fresh_until = float("-inf")

    async def admit(self, jobs: Sequence[NewJob]) -> None:
        """Counts what is ready at once; delayed and recurring jobs always enter."""
        limit = self._settings.ready_limit
        if limit is None:
            return
        if self._clock.monotonic() >= self._fresh_until:
            queues: list[QueueInfo] = await self._store.queues(self._settings.namespace)
            self._counts = {queue.name: queue.queued + queue.held for queue in queues}
            self._fresh_until = self._clock.monotonic() + self.FRESH_SECONDS
        after = dict(self._counts)
        for job in jobs:
            if job.kind is Kind.IMMEDIATE:
                after[job.lane.queue] = after.get(job.lane.queue, 0) + 1
        for queue, count in after.items():
            if count > limit and count > self._counts.get(queue, 0):
                raise BacklogFull(f"queue {queue!r} holds {self._counts.get(queue, 0)} runs; its bound is {limit}")
        self._counts = after


class Base:
    """Shared by all groups of calls."""

    def __init__(self, store: Store, clock: Clock, bus: Bus, settings: ClientSettings | None = None) -> None:
        self.store = store
        self.clock = clock
        self.bus = bus
        self.settings = settings or ClientSettings()
        self.ids = IdMaker(clock)
        self.tasks = KnownTasks(store, clock, self.settings.namespace)
        self.time = StoreTime(store, clock)
        self.book = CalendarBook(store)
        self._backlog = Backlog(store, clock, self.settings)

    async def now(self) -> Instant:
        """The store's time by the offset last measured."""
        if not self.time.measured:
            for _ in range(_FIRST_MEASUREMENTS):
                await self.time.measure()
        await self.time.refresh()
        return self.time.now()

    async def calendars(self) -> Mapping[str, Calendar]:
        """Those of the namespace, as they are now."""
        await self.book.refresh()
        return self.book.of(self.settings.namespace)

    async def calendars_for(self, documents: Iterable[object]) -> Mapping[str, Calendar]:
        """Those of the namespace if any of the documents names one; looking costs nothing where none does."""
        return await self.calendars() if any(_names_calendar(each) for each in documents) else NO_CALENDARS

    async def calendars_of(self, job: Job) -> Mapping[str, Calendar]:
        return await self.calendars() if names_calendar(job.document) else NO_CALENDARS

    async def close(self) -> None:
        """Closes the store."""
        await self.store.close()

    async def submit_prepared(self, jobs: Sequence[NewJob], *, repeat: bool = False) -> list[Submitted]:
        """Stores the jobs in one transaction; an unreachable store is tried again for a while, and no job doubled."""
        if not jobs:
            return []
        await self._backlog.admit(jobs)
        submitted = await self._send(jobs, repeat=repeat)
        if self.bus.heard:
            self.bus.publish(JobsSubmitted([job.id for job in jobs], [job.lane.task for job in jobs]))
        return submitted

    async def _send(self, jobs: Sequence[NewJob], *, repeat: bool) -> list[Submitted]:
        give_up_at = self.clock.monotonic() + self.settings.patience
        backoff = _BACKOFF_FIRST_SECONDS
        while True:
            try:
                return await self.store.submit(jobs, repeat=repeat)
            except StoreUnavailable as error:
                repeat = repeat or error.unknown_outcome
                if self.clock.monotonic() + backoff >= give_up_at:
                    raise
            await asyncio.sleep(backoff)
            backoff = min(_BACKOFF_MAX_SECONDS, _BACKOFF_FIRST_SECONDS + self.clock.random() * backoff * 3)

    async def once(self, key: str | None, fingerprint: bytes, act: Act) -> tuple[int, bytes]:
        """Carries out `act` once for the key: repeats get the first answer. Without a key it is simply done.

        `act` gets where its ids come from: an earlier try, cut short, may have stored things under them already.
        """
        if key is None:
            return await act(None)
        namespace = self.settings.namespace
        found = await self.store.begin_idempotent(key, fingerprint, namespace=namespace)
        if not found.same_body:
            raise InvalidInput.at("", f"Idempotency-Key {key!r} was used with another request; choose another key")
        if found.status is not None and found.body is not None:
            return found.status, found.body
        if not found.mine:
            raise StillInFlight(f"a request with Idempotency-Key {key!r} is still in flight; ask again in a second")
        try:
            status, body = await act(DerivedIds(parent_of_key(namespace, key), found.created_at))
        except (CallerError, StoreUnavailable) as error:
            # Nothing was stored, so the key is free again; where nobody knows, it stays taken for a minute.
            if not getattr(error, "unknown_outcome", False):
                with contextlib.suppress(WorldError):
                    await self.store.forget_idempotent(key, namespace=namespace)
            raise
        await self.store.end_idempotent(key, status, body, namespace=namespace)
        return status, body

    def changed(self, identity: UUID, action: str) -> None:
        if self.bus.heard:
            self.bus.publish(JobsChanged([identity], action))

    async def requests(self, documents: Sequence[object], *, strict: bool = False) -> list[Request]:
        """The documents with what workers said about their tasks, and what does not fit that."""
        names = {name for each in documents if (name := task_of(each)) is not None}
        known = await self.tasks.find(sorted(names))
        strict = strict or self.settings.strict_tasks
        return [self._request(document, known, strict=strict) for document in documents]

    def _request(self, document: object, known: Mapping[str, TaskInfo], *, strict: bool) -> Request:
        name = task_of(document)
        if name is None or not isinstance(document, Mapping):
            return Request(document)
        problems: list[Problem] = []
        if strict and name not in known:
            hint = nearest(name, known) or "; start a worker that has it, or submit without strict tasks"
            problems.append(Problem("/task", f"no worker has registered a task {name!r}{hint}"))
        signature, payload = self.tasks.signature(name), document.get("payload", {})
        if signature is not None and isinstance(payload, dict | list):
            problems += check_payload(signature, payload)
        return Request(document, defaults=self.tasks.defaults(name), problems=tuple(problems[:PROBLEMS_MAX]))


def _names_calendar(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("calendar") is not None


def task_of(document: object) -> str | None:
    """The task that a document names, if it does."""
    name = document.get("task") if isinstance(document, Mapping) else None
    return name if isinstance(name, str) else None
