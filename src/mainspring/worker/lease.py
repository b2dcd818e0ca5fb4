"""Renews this worker's right to its runs, hears what is asked of it, and stops handlers when the right has run out.

What counts is when the last acknowledged renewal was *sent*. Where a keeper renews for the process, its
acknowledgements count like the worker's own, and the worker asks the store only when it is told to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from mainspring.core.model import SECOND, BeatAnswer
from mainspring.worker.executor import Executor
from mainspring.worker.slots import NEVER
from mainspring.worker.surroundings import Surroundings

_GUARDS_PER_BEAT = 4
_SOONEST = 0.01
_ALONE_EVERY = 0.5  # well under what a watcher bears of an absent keeper
_PATIENCE = 2.0  # beats without word from the keeper until the worker renews by itself


class Orders(Protocol):
    """What the rest of the worker does with what the store asks."""

    def drain(self) -> None: ...

    async def begin_anew(self) -> None:
        """This id was declared lost: everything held is dropped and another id registered."""
        ...


class Lease:
    def __init__(self, around: Surroundings, executor: Executor, orders: Orders) -> None:
        self._surroundings = around
        self._store = around.store
        self._clock = around.clock
        self._executor = executor
        self._orders = orders
        self._beat = around.settings.beat / SECOND
        self._process_signs = around.store.capabilities.process_signs
        self.acknowledged_at = around.clock.monotonic()
        self._kept_at = float("-inf")
        self._asked = False
        self._alone = False
        self._revoked: UUID | None = None

    def holds_right(self, now: float) -> bool:
        """Whether new runs may be taken: after an outage not before a renewal, else they would be stopped at once."""
        if self._process_signs or now - self.acknowledged_at < self._surroundings.settings.lease / SECOND / 2:
            return True
        self._asked = True
        return False

    def ask_now(self) -> None:
        """The next step asks the store, whoever renews."""
        self._asked = True

    def revoke(self, worker: UUID) -> None:
        """The keeper heard that the worker of this id was declared lost."""
        self._revoked = worker

    def acknowledge(self, sent: float) -> None:
        """A renewal that was sent then has been acknowledged."""
        self.acknowledged_at = max(self.acknowledged_at, sent)

    def unkept(self) -> None:
        """The keeper has gone. Until the next one renews the worker does, and often: so a watcher sees that it lives."""
        self._alone = not self._process_signs

    def acknowledge_by_keeper(self, sent: float) -> None:
        self._alone = False
        self.acknowledge(sent)
        self._kept_at = max(self._kept_at, sent)

    async def step(self, now: float) -> float | None:
        """Renews, or only listens where the keeper does."""
        if self._revoked == self._surroundings.worker:
            await self._orders.begin_anew()
            return 0.0
        if self._asked or self._alone or now - self._kept_at > self._beat * _PATIENCE:
            self._asked = False
            await self._renew(now)
        return min(self._beat, _ALONE_EVERY) if self._alone else self._beat

    async def step_guard(self, now: float) -> float | None:
        """Stops the handlers whose right has run out. It asks nobody, so that no outage can hold it up.

        Where a process shows its life by a lock of the operating system, no outage can end its right.
        """
        if self._process_signs:
            return None
        self._executor.stop_lost(self.acknowledged_at, now)
        loss = self._executor.nearest_loss(self.acknowledged_at)
        return self._beat / _GUARDS_PER_BEAT if loss == NEVER else self._until(loss - now)

    async def _renew(self, sent: float) -> None:
        worker = self._surroundings.worker
        try:
            answers = await self._store.beat([worker])
        except BaseException:
            self._asked = True
            raise
        if worker != self._surroundings.worker:
            return
        answer = answers[0]
        if not answer.known:
            await self._orders.begin_anew()
            return
        self.acknowledge(sent)
        if answer.now:
            self._surroundings.store_time.sample(sent, self._clock.monotonic(), answer.now)
        self.obey(answer)

    def obey(self, answer: BeatAnswer) -> None:
        self.cancel(answer.cancel)
        if answer.drain:
            self._orders.drain()

    def cancel(self, runs: Sequence[tuple[UUID, int]]) -> None:
        for run_id, fence in runs:
            self._executor.cancel(run_id, fence)

    def _until(self, loss: float) -> float:
        return min(self._beat / _GUARDS_PER_BEAT, max(_SOONEST, loss))
