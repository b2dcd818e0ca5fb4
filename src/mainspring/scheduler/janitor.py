"""Puts right what time and accidents leave: lost attempts, retries that are due, runs that expired."""

from __future__ import annotations

from mainspring.core.model import Instant
from mainspring.core.states import State
from mainspring.observe.events import Bus, RescuedRun, RunsExpired, RunsPromoted, RunsRescued
from mainspring.ports.clock import Clock
from mainspring.ports.store import Rescued, Store
from mainspring.ports.store_time import StoreTime
from mainspring.scheduler.settings import SchedulerSettings

_NOT_QUITE_YET_SECONDS = 0.001


class Rescuer:
    """Gives the runs of lost workers back, or ends them, as the core decides."""

    def __init__(self, store: Store, clock: Clock, bus: Bus, settings: SchedulerSettings) -> None:
        self._store = store
        self._clock = clock
        self._bus = bus
        self._settings = settings

    async def step(self, _now: float) -> float:
        rescued = await self._store.rescue(limit=self._settings.rescue_batch, random_value=self._clock.random())
        if not rescued:
            return self._settings.rescue_every
        self._bus.publish(RunsRescued([_told(one) for one in rescued]))
        return 0.0 if len(rescued) >= self._settings.rescue_batch else self._settings.rescue_every


class Promoter:
    """Makes retries ready when their time has come, and ends what expired before it started."""

    def __init__(self, store: Store, store_time: StoreTime, bus: Bus, settings: SchedulerSettings) -> None:
        self._store = store
        self._time = store_time
        self._bus = bus
        self._settings = settings

    async def step(self, _now: float) -> float:
        await self._time.refresh()
        wake = await self._store.next_wake()
        if wake is None or wake > self._time.now():
            return self._wait(wake)
        batch = self._settings.promote_batch
        promoted = await self._store.promote(limit=batch)
        expired = await self._store.expire(limit=batch)
        if promoted:
            self._bus.publish(RunsPromoted(promoted))
        if expired:
            self._bus.publish(RunsExpired(expired))
        return 0.0 if promoted or expired else _NOT_QUITE_YET_SECONDS

    def _wait(self, wake: Instant | None) -> float:
        if wake is None:
            return self._settings.idle_every
        return min(self._settings.idle_every, self._time.seconds_until(wake))


def _told(rescued: Rescued) -> RescuedRun:
    return RescuedRun(rescued.run_id, rescued.worker, State(rescued.state).word, rescued.reason)
