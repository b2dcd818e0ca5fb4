"""What a supervisor does about a worker process that died: it holds the process, so it knows.

The keeper of the host says so first, and knows more (which run made it kill the process). But a process may die before
its keeper has come up, or together with it; then this word saves the lease's whole silence.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Protocol
from uuid import UUID

from mainspring.app.stores import patiently
from mainspring.core.model import Evidence
from mainspring.core.states import State
from mainspring.observe.events import Bus, RescuedRun, RunsRescued, WorkerLost
from mainspring.ports.store import Store

KEEPER_FIRST_SECONDS = 0.5
RESCUE_BATCH = 500

_log = logging.getLogger("mainspring.supervisor")


class Dead(Protocol):
    """A process that has ended, and the worker that it was."""

    @property
    def worker(self) -> UUID | None: ...

    @property
    def left_threads(self) -> bool: ...


class Deaths:
    """Tells the store; what it is told twice changes nothing."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus
        self.telling: set[asyncio.Task[None]] = set()

    def tell(self, dead: Dead, *, clean: bool) -> None:
        """Goes on in the background, until the store has answered."""
        if dead.worker is None or (clean and not dead.left_threads):
            return
        evidence = Evidence.DRAIN if dead.left_threads else Evidence.DEATH
        task = asyncio.create_task(self._tell(dead.worker, evidence), name=f"death of {dead.worker}")
        self.telling.add(task)
        task.add_done_callback(self._told)

    async def close(self) -> None:
        """A moment for what is being told; the keeper tells it too."""
        if self.telling:
            await asyncio.wait(self.telling, timeout=2 * KEEPER_FIRST_SECONDS)
        for task in self.telling:
            task.cancel()

    def _told(self, task: asyncio.Task[None]) -> None:
        self.telling.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("%s could not be told", task.get_name(), exc_info=task.exception())

    async def _tell(self, worker: UUID, evidence: Evidence) -> None:
        await asyncio.sleep(KEEPER_FIRST_SECONDS)
        if not await patiently(lambda: self._store.declare_lost(worker, evidence)):
            return
        self._bus.publish(WorkerLost(worker, evidence.value))
        while True:
            rescued = await patiently(lambda: self._store.rescue(limit=RESCUE_BATCH, random_value=random.random()))
            if rescued:
                runs = [RescuedRun(each.run_id, each.worker, State(each.state).word, each.reason) for each in rescued]
                self._bus.publish(RunsRescued(runs))
            if len(rescued) < RESCUE_BATCH:
                return
