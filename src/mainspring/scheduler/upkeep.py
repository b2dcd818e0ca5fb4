"""Keeps the store in shape: partitions ahead of time, old ones dropped whole."""

from __future__ import annotations

import logging

from mainspring.ports.store import Store
from mainspring.scheduler.settings import SchedulerSettings

_log = logging.getLogger("mainspring.scheduler")


class Upkeep:
    def __init__(self, store: Store, settings: SchedulerSettings) -> None:
        self._store = store
        self._settings = settings

    async def step(self, _now: float) -> float:
        done = await self._store.upkeep(history_days=self._settings.history_days, log_days=self._settings.log_days)
        if any(done.values()):
            _log.info("upkeep: %s", ", ".join(f"{name} {count}" for name, count in sorted(done.items()) if count))
        return self._settings.upkeep_every
