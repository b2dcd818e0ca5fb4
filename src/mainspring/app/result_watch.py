"""Waiting for the ends of jobs: one look at the store serves everybody who waits."""

from __future__ import annotations

import asyncio
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import JobView
from mainspring.observe.events import Event, RunsEnded
from mainspring.ports.clock import Clock
from mainspring.ports.store import Store

FIRST_SECONDS = 0.002
MAX_SECONDS = 0.05
BATCH = 500
ENDED = frozenset({"completed", "failed", "cancelled", "skipped", "finished"})


class ResultWatch:
    """Looks soon after somebody began to wait, and less and less often while nothing ends."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[UUID, list[asyncio.Future[JobView | None]]] = {}
        self._wait = FIRST_SECONDS
        self._woken = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def ended(self, identity: UUID) -> JobView | None:
        """The job once its newest run has ended; None for one that nobody knows."""
        future: asyncio.Future[JobView | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(identity, []).append(future)
        self._wait = FIRST_SECONDS
        self._woken.set()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch(), name="mainspring-results")
        try:
            return await future
        finally:
            self._leave(identity, future)

    def listen(self, event: Event) -> None:
        """Subscribed to a bus: what ended in this very process is looked at without waiting."""
        waiting = self._waiting
        if isinstance(event, RunsEnded) and waiting and any(each.claimed.job_id in waiting for each in event.runs):
            self._woken.set()

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for futures in self._waiting.values():
            for future in futures:
                future.cancel()

    def _leave(self, identity: UUID, future: asyncio.Future[JobView | None]) -> None:
        futures = self._waiting.get(identity, [])
        if future in futures:
            futures.remove(future)
        if not futures:
            self._waiting.pop(identity, None)

    async def _watch(self) -> None:
        while self._waiting:
            try:
                ended = await self._look()
            except StoreUnavailable:
                # Whoever waits has said how long; the store may be back before.
                ended, self._wait = False, MAX_SECONDS * (1 + self._clock.random() * 9)
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                self._give_up(error)
                return
            self._wait = FIRST_SECONDS if ended else min(max(MAX_SECONDS, self._wait / 2), self._wait * 1.3)
            await self._pause()

    async def _pause(self) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(self._wait):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _look(self) -> bool:
        any_ended = False
        ids = list(self._waiting)
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            for identity, view in zip(batch, await self._store.jobs(batch), strict=True):
                if view is None or view.status in ENDED:
                    any_ended = True
                    self._answer(identity, view)
        return any_ended

    def _answer(self, identity: UUID, view: JobView | None) -> None:
        for future in self._waiting.pop(identity, []):
            if not future.done():
                future.set_result(view)

    def _give_up(self, error: Exception) -> None:
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
        self._waiting.clear()
