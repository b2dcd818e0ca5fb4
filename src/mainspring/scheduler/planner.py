"""Fires jobs at their instants: looks ahead over its own shards, keeps the near future in memory, fires whole batches.

Any number of schedulers may try to fire an occurrence; the store lets one succeed. So ownership, the look-ahead and
hints save work and waiting, and nothing depends on them: the sweep finds whatever is overdue, whoever owned it.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Sequence
from uuid import UUID

from mainspring.core.errors import CallerError
from mainspring.core.firing import plan_firing
from mainspring.core.model import Firing, Instant, Job
from mainspring.core.shards import owned_shards
from mainspring.observe.events import Bus, RunsFired
from mainspring.ports.calendar_book import CalendarBook, names_calendar
from mainspring.ports.clock import Clock
from mainspring.ports.replanning import replan_users, replanned
from mainspring.ports.store import Fired, Store
from mainspring.ports.store_time import StoreTime
from mainspring.scheduler.settings import SchedulerSettings

_log = logging.getLogger("mainspring.scheduler")
_BROKEN_FOR_SECONDS = 60.0


class Planner:
    """The near future of the shards this scheduler owns."""

    def __init__(
        self,
        store: Store,
        store_time: StoreTime,
        clock: Clock,
        bus: Bus,
        settings: SchedulerSettings,
        identity: UUID,
    ) -> None:
        self._store = store
        self._time = store_time
        self._clock = clock
        self._bus = bus
        self._settings = settings
        self._identity = identity
        self._calendars = CalendarBook(store)
        self.members: tuple[UUID, ...] = (identity,)
        self._near: dict[UUID, Job] = {}
        self._heap: list[tuple[Instant, UUID]] = []
        self._broken: dict[UUID, float] = {}
        self._scan_at = 0.0
        self._scanned_at = 0.0
        self._seen_until: Instant = 0

    def rescan(self) -> None:
        """Some schedule changed: look again soon; a storm of changes costs one look per gap."""
        self._scan_at = min(self._scan_at, self._scanned_at + self._settings.scan_gap)

    async def step(self, now: float) -> float:
        await self._time.refresh()
        if now >= self._scan_at:
            await self._scan(now)
        due = self._take_due(self._time.now())
        if due:
            await self._fire(due)
        return self._seconds_to_next(now)

    async def sweep(self, now: float) -> float:
        """Fires whatever is overdue, whoever owns it: losing an owner costs a second, not an election."""
        await self._time.refresh()
        overdue = self._time.now() - round(self._settings.overdue_after * 1_000_000)
        jobs = await self._store.due_jobs(None, until=overdue, limit=self._settings.fire_batch)
        jobs = [job for job in jobs if not self._is_broken(job.id, now)]
        if any(names_calendar(job.document) for job in jobs):
            await self._read_calendars()
        if not jobs:
            return self._settings.overdue_after
        await self._fire(jobs)
        return 0.0 if len(jobs) >= self._settings.fire_batch else self._settings.overdue_after

    async def _read_calendars(self) -> None:
        """Where one changed, what is to come of its jobs was perhaps written by a scheduler that did not know yet."""
        for namespace, name in await self._calendars.refresh():
            after = self._calendars.of(namespace)
            await replan_users(self._store, name, namespace, after, after, self._settings.misfire)

    async def _scan(self, now: float) -> None:
        await self._read_calendars()
        until = self._time.now() + round(self._settings.look_ahead * 1_000_000)
        shards = None if len(self.members) == 1 else owned_shards(self._identity, self.members)
        jobs = await self._store.due_jobs(shards, until=until, limit=self._settings.look_ahead_jobs)
        full = len(jobs) >= self._settings.look_ahead_jobs
        self._seen_until = (jobs[-1].scheduled_at or until) if full else until
        self._near = {job.id: job for job in jobs if not self._is_broken(job.id, now)}
        self._heap = [(job.scheduled_at, job.id) for job in self._near.values() if job.scheduled_at is not None]
        heapq.heapify(self._heap)
        self._scanned_at = now
        self._scan_at = now + self._settings.scan_every

    def _take_due(self, store_now: Instant) -> list[Job]:
        due: list[Job] = []
        while self._heap and self._heap[0][0] <= store_now and len(due) < self._settings.fire_batch:
            job = self._near.pop(heapq.heappop(self._heap)[1], None)
            if job is not None:
                due.append(job)
        return due

    async def _fire(self, jobs: Sequence[Job]) -> None:
        planned = {job.id: (job, firing) for job in jobs if (firing := self._plan(job)) is not None}
        for job in jobs:
            if job.id not in planned:
                await self._correct(job)
        if not planned:
            return
        fired = await self._store.fire([firing for _, firing in planned.values()])
        self._publish(fired, [job for job, _ in planned.values()])
        self._keep_near(planned[one.job_id] for one in fired if one.applied)

    def _plan(self, job: Job) -> Firing | None:
        try:
            calendars = self._calendars.of(job.lane.namespace)
            return plan_firing(job, self._time.now(), misfire=self._settings.misfire, calendars=calendars)
        except (CallerError, ValueError) as error:
            _log.exception("job %s cannot be planned and rests for a minute: %s", job.id, error)
            self._broken[job.id] = self._clock.monotonic() + _BROKEN_FOR_SECONDS
            return None

    async def _correct(self, job: Job) -> None:
        """Its row says that something is due, and nothing is: a calendar has moved it."""
        if job.id in self._broken or not names_calendar(job.document):
            return
        calendars = self._calendars.of(job.lane.namespace)
        edit = replanned(job, self._time.now(), calendars, calendars, self._settings.misfire)
        if edit is not None:
            await self._store.change(edit)

    def _keep_near(self, applied: Iterable[tuple[Job, Firing]]) -> None:
        for job, firing in applied:
            following = firing.next_scheduled_at
            if following is None or following > self._seen_until:
                continue
            job.fired_through, job.next_at, job.scheduled_at = firing.fired_through, firing.next_at, following
            job.runs_made += len(firing.runs)
            self._near[job.id] = job
            heapq.heappush(self._heap, (following, job.id))

    def _publish(self, fired: Sequence[Fired], jobs: Sequence[Job]) -> None:
        runs = [run for one in fired for run in one.runs]
        skipped = sum(one.skipped for one in fired)
        if runs or skipped:
            now = self._time.now()
            lateness = max(now - job.scheduled_at for job in jobs if job.scheduled_at is not None)
            self._bus.publish(RunsFired(self._identity, len(jobs), runs, skipped, max(0, lateness)))

    def _is_broken(self, job_id: UUID, now: float) -> bool:
        until = self._broken.get(job_id)
        if until is None:
            return False
        if now >= until:
            del self._broken[job_id]
            return False
        return True

    def _seconds_to_next(self, now: float) -> float:
        wait = max(0.0, self._scan_at - now)
        if self._heap:
            wait = min(wait, self._time.seconds_until(self._heap[0][0]))
        return wait
