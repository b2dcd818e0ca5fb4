"""Fires jobs at their instants: looks ahead over its own shards, keeps the near future in memory, fires whole batches.

Any number of schedulers may try to fire an occurrence; the store lets one succeed. So ownership, the look-ahead and
hints save work and waiting, and nothing depends on them: the sweep finds whatever is overdue, whoever owned it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from uuid import UUID

from mainspring.core.errors import CallerError, WorldError
from mainspring.core.firing import plan_firing
from mainspring.core.model import SECOND, Firing, Instant, Job
from mainspring.core.shards import owned_shards
from mainspring.observe.events import Bus, RunsFired
from mainspring.ports.calendar_book import CalendarBook, names_calendar
from mainspring.ports.clock import Clock
from mainspring.ports.replanning import replan_users, replanned
from mainspring.ports.store import Fired, Store
from mainspring.ports.store_time import StoreTime
from mainspring.scheduler.near import Near
from mainspring.scheduler.settings import SchedulerSettings

_log = logging.getLogger("mainspring.scheduler")
_BROKEN_FOR_SECONDS = 60.0
_LAST = UUID(int=(1 << 128) - 1)


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
        self._near = Near()
        self._firing: set[UUID] = set()
        self._broken: dict[UUID, float] = {}
        self._scan_at = 0.0
        self._scan_whole_at = 0.0
        self._scanned_at = 0.0
        self._scan_took = 0.0
        self._seen: tuple[Instant, UUID] | None = None
        self._seen_all = False
        self._horizon: Instant = 0

    def rescan(self, soonest: Instant | None = None) -> bool:
        """Some schedule changed: look again soon; a storm of changes costs one look per gap, and a twentieth of the time.
        A change that comes later than what has been seen (`soonest`) is met on the way: False."""
        if soonest is not None and self._seen is not None and soonest > self._seen[0]:
            return False
        gap = max(self._settings.scan_gap, 19 * self._scan_took)
        self._scan_whole_at = min(self._scan_whole_at, self._scanned_at + gap)
        self._scan_at = min(self._scan_at, self._scan_whole_at)
        return True

    async def step(self, now: float) -> float:
        """Looks ahead if it is time to, and fires what is due."""
        await self._time.refresh()
        if now >= self._scan_at:
            await self._scan(now)
        wait = await self.step_fire(now)
        return min(wait, max(0.0, self._scan_at - now))

    async def step_fire(self, now: float) -> float:
        """Fires one batch of what is due. Several loops may do this side by side: none waits for another's commit."""
        limit = self._settings.fire_batch if self._firing else self._settings.fire_first
        due = self._near.take_due(self._time.now(), limit)
        if due:
            await self._fire(due)
            if not self._seen_all and len(self._near) < self._settings.look_ahead_jobs // 2:
                self._scan_at = min(self._scan_at, now)
        following = self._near.next_at
        return self._settings.scan_every if following is None else self._time.seconds_until(following)

    async def sweep(self, now: float) -> float:
        """Fires whatever is overdue, whoever owns it: losing an owner costs a second, not an election."""
        await self._time.refresh()
        overdue = self._time.now() - round(self._settings.overdue_after * 1_000_000)
        jobs = await self._store.due_jobs(None, until=overdue, limit=self._settings.fire_batch)
        jobs = [job for job in jobs if not self._is_at_hand(job.id) and not self._is_broken(job.id, now)]
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
        """Reads on from where it has come to; from the beginning where something may have changed before that."""
        await self._read_calendars()
        whole = now >= self._scan_whole_at or self._seen is None
        self._scanned_at = now
        self._scan_at = now + self._settings.scan_every
        if whole:
            self._scan_whole_at = now + self._whole_every
            self._seen = None
            self._near.begin_whole()
        until = self._time.now() + round(self._settings.look_ahead * SECOND)
        shards = None if len(self.members) == 1 else owned_shards(self._identity, self.members)
        self._horizon = max(self._horizon, until)
        room = self._settings.look_ahead_jobs - (0 if whole else len(self._near))
        try:
            await self._read_on(shards, until, now, room)
        except WorldError:
            self._seen = None  # what was begun is begun again
            raise
        if whole:
            self._near.end_whole()
        self._scan_took = self._clock.monotonic() - now

    async def _read_on(self, shards: Sequence[int] | None, until: Instant, now: float, room: int) -> None:
        chunk = self._settings.look_ahead_chunk
        self._seen_all = False
        while room > 0:
            jobs = await self._store.coming_jobs(shards, after=self._seen, until=until, limit=chunk)
            self._near.add(job for job in jobs if job.id not in self._firing and not self._is_broken(job.id, now))
            if len(jobs) < chunk:
                self._seen = (until, _LAST)
                self._seen_all = True
                return
            self._seen = (jobs[-1].scheduled_at or until, jobs[-1].id)
            room -= len(jobs)

    @property
    def _whole_every(self) -> float:
        """Where hints tell of changes, what was read once need not be read again each time; the sweep finds the rest."""
        return self._settings.scan_whole_every if self._store.capabilities.hints else self._settings.scan_every

    async def _fire(self, jobs: Sequence[Job]) -> None:
        """Where somebody else changed or fired one, or the store did not answer, what is known here is old."""
        ids = {job.id for job in jobs}
        self._firing |= ids
        well = False
        try:
            well = await self._fire_planned(jobs)
        finally:
            self._firing -= ids
            if not well:
                self.rescan()

    async def _fire_planned(self, jobs: Sequence[Job]) -> bool:
        now = self._time.now()
        planned = {job.id: (job, firing) for job in jobs if (firing := self._plan(job, now)) is not None}
        for job in jobs:
            if job.id not in planned:
                await self._correct(job)
        if not planned:
            return True
        fired = await self._store.fire([firing for _, firing in planned.values()])
        self._publish(fired, [job for job, _ in planned.values()])
        self._keep_near(planned[one.job_id] for one in fired if one.applied)
        return all(one.applied for one in fired)

    def _plan(self, job: Job, now: Instant) -> Firing | None:
        try:
            calendars = self._calendars.of(job.lane.namespace)
            return plan_firing(job, now, misfire=self._settings.misfire, calendars=calendars)
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
        """What comes later than what has been seen is read on the way."""
        kept = []
        for job, firing in applied:
            following = firing.next_scheduled_at
            if following is None or following > self._horizon:
                continue
            job.fired_through, job.next_at, job.scheduled_at = firing.fired_through, firing.next_at, following
            job.runs_made += len(firing.runs)
            kept.append(job)
        self._near.add(kept)

    def _publish(self, fired: Sequence[Fired], jobs: Sequence[Job]) -> None:
        runs = [run for one in fired for run in one.runs]
        skipped = sum(one.skipped for one in fired)
        if runs or skipped:
            now = self._time.now()
            lateness = max(now - job.scheduled_at for job in jobs if job.scheduled_at is not None)
            self._bus.publish(RunsFired(self._identity, len(jobs), runs, skipped, max(0, lateness)))

    def _is_at_hand(self, job_id: UUID) -> bool:
        """Its turn comes here, or has come: firing it twice would only take time from others."""
        return job_id in self._firing or job_id in self._near

    def _is_broken(self, job_id: UUID, now: float) -> bool:
        until = self._broken.get(job_id)
        if until is None:
            return False
        if now >= until:
            del self._broken[job_id]
            return False
        return True
