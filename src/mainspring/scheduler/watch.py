"""Looks at workers and their signs of life, and declares lost those against whom the evidence stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.core.liveness import Accusation, Look, Memory, Rules, judge
from mainspring.core.model import WorkerInfo
from mainspring.observe.events import Bus, WorkerLost
from mainspring.ports.store import Sign, Store
from mainspring.scheduler.settings import SchedulerSettings

_log = logging.getLogger("mainspring.scheduler")


class Watch:
    """One look a step. What it remembers lies in `Memory`; what counts as evidence is decided in the core."""

    def __init__(self, store: Store, bus: Bus, settings: SchedulerSettings) -> None:
        self._store = store
        self._bus = bus
        self._memory = Memory()
        own_signs = store.capabilities.process_signs
        self._rules = Rules(own_signs=own_signs)
        self._every = settings.watch_own_signs_every if own_signs else settings.watch_every
        self.on_lost: Callable[[], None] = _nothing

    async def step(self, now: float) -> float:
        try:
            look = await self._look()
        except WorldError:
            self._memory.forget()
            raise
        accusations = judge(self._memory, look, now, self._rules)
        for accusation in accusations:
            await self._declare(accusation)
        return self._every

    async def _look(self) -> Look:
        workers = await self._store.workers()
        signs = await self._store.signs(self._identities(workers))
        return Look(
            workers=workers,
            absent=frozenset(identity for identity, sign in signs.seen.items() if sign is Sign.FREE),
            stopped=frozenset(identity for identity, sign in signs.seen.items() if sign is Sign.STOPPED),
            epoch=signs.epoch,
        )

    def _identities(self, workers: Sequence[WorkerInfo]) -> list[UUID]:
        if self._store.capabilities.process_signs:
            return [worker.id for worker in workers]
        if self._store.capabilities.session_signs:
            return sorted({worker.keeper for worker in workers if worker.keeper is not None})
        return []

    async def _declare(self, accusation: Accusation) -> None:
        lost = await self._store.declare_lost(accusation.worker, accusation.evidence, beat=accusation.beat)
        if lost:
            _log.warning("worker %s is lost: %s", accusation.worker, accusation.evidence.value)
            self._bus.publish(WorkerLost(accusation.worker, accusation.evidence.value))
            self.on_lost()


def _nothing() -> None:
    """Until somebody wants to know."""
