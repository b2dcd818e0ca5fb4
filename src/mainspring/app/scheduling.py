"""A scheduler beside other parts of one process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from mainspring.config import Settings
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store
from mainspring.scheduler.scheduler import Scheduler
from mainspring.scheduler.settings import SchedulerSettings

RESTART_SECONDS = 1.0
STOP_SECONDS_MAX = 5.0

_log = logging.getLogger("mainspring.scheduler")


@contextlib.asynccontextmanager
async def scheduling(store: Store, bus: Bus, settings: Settings) -> AsyncIterator[None]:
    """Schedules while the block lasts. A bug that ends the scheduler does not end the rest: another one begins."""
    keeper = _Keeper(store, bus, settings)
    task = asyncio.create_task(keeper.run(), name="scheduler")
    try:
        yield
    finally:
        keeper.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await asyncio.gather(task, return_exceptions=True)


class _Keeper:
    def __init__(self, store: Store, bus: Bus, settings: Settings) -> None:
        self._store = store
        self._bus = bus
        self._settings = SchedulerSettings(
            history_days=settings.history_days,
            log_days=settings.log_days,
            misfire=settings.misfire,
        )
        self._scheduler: Scheduler | None = None
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        while not self._stopped.is_set():
            self._scheduler = Scheduler(self._store, SystemClock(), self._bus, self._settings)
            try:
                await self._scheduler.run()
            except Exception:  # noqa: BLE001 - a bug of the scheduler must not end what runs beside it
                _log.exception("the scheduler failed; another one starts in %.0f s", RESTART_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RESTART_SECONDS):
                        await self._stopped.wait()

    def stop(self) -> None:
        self._stopped.set()
        if self._scheduler is not None:
            self._scheduler.request_stop()
