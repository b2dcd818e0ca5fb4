"""A scheduler: its loops, and how they wake each other."""

from __future__ import annotations

import asyncio
import logging
import socket
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.observe.events import Bus, SchedulerStarted, SchedulerStopped
from mainspring.observe.loop import Loop, Step
from mainspring.ports.clock import Clock
from mainspring.ports.store import Hint, Store, Topic
from mainspring.ports.store_time import StoreTime
from mainspring.scheduler.janitor import Promoter, Rescuer
from mainspring.scheduler.planner import Planner
from mainspring.scheduler.settings import SchedulerSettings
from mainspring.scheduler.upkeep import Upkeep
from mainspring.scheduler.watch import Watch

_log = logging.getLogger("mainspring.scheduler")


class Scheduler:
    """Runs until `request_stop`. Any number of them may run on one store."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        bus: Bus,
        settings: SchedulerSettings | None = None,
        *,
        host: str | None = None,
    ) -> None:
        self._store = store
        self._settings = settings or SchedulerSettings()
        self._host = host or socket.gethostname()
        self._bus = bus
        self._time = StoreTime(store, clock)
        self.id = UUID(bytes=clock.random_bytes(16), version=4)
        self._planner = Planner(store, self._time, clock, bus, self._settings, self.id)
        watch = Watch(store, bus, self._settings)
        rescuer = Rescuer(store, clock, bus, self._settings)
        promoter = Promoter(store, self._time, bus, self._settings)
        steps: dict[str, Step] = {
            "membership": self._beat,
            "plan": self._planner.step,
            "sweep": self._planner.sweep,
            "watch": watch.step,
            "rescue": rescuer.step,
            "promote": promoter.step,
            "upkeep": Upkeep(store, self._settings).step,
        }
        steps |= {f"fire-{number}": self._planner.step_fire for number in range(2, self._settings.fire_at_once + 1)}
        self._loops = {name: _loop(name, step, clock, bus) for name, step in steps.items()}
        watch.on_lost = self._loops["rescue"].wake

    async def run(self) -> None:
        unsubscribe = self._store.subscribe(self._hear)
        self._bus.publish(SchedulerStarted(self.id, self._host))
        try:
            async with asyncio.TaskGroup() as group:
                for loop in self._loops.values():
                    group.create_task(loop.run(), name=f"scheduler-{loop.name}")
        finally:
            unsubscribe()
        try:
            await self._store.scheduler_stop(self.id)
        except WorldError as error:
            _log.warning("the store does not hear that scheduler %s stops: %s", self.id, error)
        self._bus.publish(SchedulerStopped(self.id))

    def request_stop(self) -> None:
        for loop in self._loops.values():
            loop.stop()

    def _hear(self, hint: Hint) -> None:
        if hint.topic is Topic.JOBS:
            if self._planner.rescan(int(hint.key) if hint.key.isdigit() else None):
                self._loops["plan"].wake()
            self._loops["promote"].wake()

    async def _beat(self, _now: float) -> float:
        silent_after = round(self._settings.member_silent_after * 1_000_000)
        members = tuple(sorted(await self._store.scheduler_beat(self.id, host=self._host, silent_after=silent_after)))
        if members != self._planner.members:
            self._planner.members = members
            self._planner.rescan()
            self._loops["plan"].wake()
        return self._settings.member_beat


def _loop(name: str, step: Step, clock: Clock, bus: Bus) -> Loop:
    loop = Loop(name, clock=clock, bus=bus)
    loop.step = step
    return loop
