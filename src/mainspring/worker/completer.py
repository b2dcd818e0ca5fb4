"""Sends endings to the store in batches: one flush at a time, the next takes all that ended meanwhile.

An outage keeps them in memory, in order; they are sent again until the store answers. Sending twice is safe, since a
fence takes one ending: after a lost reply a stale answer is looked up, to learn whether it was ours that was taken.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from mainspring.core.errors import StoreUnavailable, WorldError
from mainspring.core.model import BATCH_BYTES_MAX, SECOND, Verdict
from mainspring.core.states import State
from mainspring.observe import events
from mainspring.worker.executor import SUSPICIOUS_DEATHS
from mainspring.worker.outcome import Finished, as_cancelled
from mainspring.worker.surroundings import Surroundings

_ROW_BYTES = 200

_ended_run = events.EndedRun._make


class Completer:
    """`on_flushed` is called whenever endings were taken."""

    def __init__(self, around: Surroundings, *, wake: Callable[[], None], on_flushed: Callable[[], None]) -> None:
        self._surroundings = around
        self._store = around.store
        self._bus = around.bus
        self._finish_max = around.settings.finish_max
        self._wake = wake
        self._on_flushed = on_flushed
        self._waiting: deque[Finished] = deque()
        self._sending: list[Finished] = []
        self._uncertain: set[tuple[UUID, int]] = set()
        self._generation = 0

    def deliver(self, finished: Finished) -> None:
        if not self._waiting:
            self._wake()  # for those that follow it: a step goes on until none waits
        self._waiting.append(finished)

    @property
    def pending(self) -> int:
        return len(self._waiting) + len(self._sending)

    def held(self) -> Iterator[tuple[UUID, int]]:
        for finished in [*self._sending, *self._waiting]:
            yield finished.claimed.id, finished.claimed.fence

    def holds_suspect(self) -> bool:
        return any(each.claimed.deaths >= SUSPICIOUS_DEATHS for each in [*self._sending, *self._waiting])

    def drop_all(self) -> int:
        """The runs have been taken from this worker: there is nothing more to say about them."""
        dropped = self.pending
        self._waiting.clear()
        self._sending.clear()
        self._uncertain.clear()
        self._generation += 1
        return dropped

    async def step(self, now: float) -> float | None:
        """Sends one batch."""
        del now
        if not self._waiting:
            return None
        batch = self._sending = self._take()
        generation = self._generation
        try:
            verdicts = await self._store.finish(self._surroundings.worker, [each.ending for each in batch])
        except WorldError as error:
            if generation == self._generation:
                self._keep(batch, uncertain=isinstance(error, StoreUnavailable) and error.unknown_outcome)
            raise
        except Exception:  # noqa: BLE001 - one ending that no store can take must not hold up the others
            if generation == self._generation:
                self._sending = []
                await self._send_singly(batch)
            return 0.0 if self._waiting else None
        if generation == self._generation:
            self._sending = []
            await self._settle(batch, verdicts)
        return 0.0 if self._waiting else None

    def _take(self) -> list[Finished]:
        batch: list[Finished] = []
        size = 0
        while self._waiting and len(batch) < self._finish_max:
            ending = self._waiting[0].ending
            size += _ROW_BYTES + len(ending.result or b"") + len(ending.error or "") + len(ending.attempts or "")
            if batch and size > BATCH_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _keep(self, batch: Sequence[Finished], *, uncertain: bool) -> None:
        self._waiting.extendleft(reversed(batch))
        self._sending = []
        if uncertain:
            self._uncertain.update((each.claimed.id, each.claimed.fence) for each in batch)

    async def _settle(self, batch: Sequence[Finished], verdicts: Sequence[Verdict]) -> None:
        accepted, stale = self._sort(batch, verdicts)
        doubtful = [each for each in stale if (each.claimed.id, each.claimed.fence) in self._uncertain]
        if self._uncertain:
            self._uncertain.difference_update((each.claimed.id, each.claimed.fence) for each in batch)
        self._tell(accepted, [each.claimed.id for each in stale if each not in doubtful])
        self._on_flushed()
        if doubtful:
            await self._look_up(doubtful)

    def _sort(self, batch: Sequence[Finished], verdicts: Sequence[Verdict]) -> tuple[list[Finished], list[Finished]]:
        if all(verdict is Verdict.ACCEPTED for verdict in verdicts):
            return list(batch), []
        accepted: list[Finished] = []
        stale: list[Finished] = []
        for finished, verdict in zip(batch, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED:
                accepted.append(finished)
            elif verdict is Verdict.STALE:
                stale.append(finished)
            else:
                self._waiting.append(as_cancelled(finished, self._surroundings.worker))
        return accepted, stale

    async def _look_up(self, doubtful: Sequence[Finished]) -> None:
        """The reply to an earlier send was lost: what the rows say tells whether that send was taken."""
        try:
            runs = await self._store.runs([each.claimed.id for each in doubtful])
        except WorldError:
            return  # only what is told of them depends on it
        accepted: list[Finished] = []
        stale: list[Finished] = []
        for finished, run in zip(doubtful, runs, strict=True):
            ending = finished.ending
            taken = run is not None and run.fence == ending.fence and run.state is not State.RUNNING
            ours = taken and run is not None and (run.state is ending.state or not ending.state.ended)
            (accepted if ours else stale).append(finished)
        self._tell(accepted, [each.claimed.id for each in stale])

    async def _send_singly(self, batch: Sequence[Finished]) -> None:
        for index, finished in enumerate(batch):
            try:
                verdicts = await self._store.finish(self._surroundings.worker, [finished.ending])
            except WorldError:
                self._keep(batch[index:], uncertain=True)
                raise
            except Exception:  # noqa: BLE001 - told, and left to the rescue of this worker's runs
                self._bus.publish(events.StepFailed("finish", traceback.format_exc()))
            else:
                await self._settle([finished], verdicts)

    def _tell(self, accepted: Sequence[Finished], stale: Sequence[UUID]) -> None:
        if not self._bus.heard:
            return
        worker = self._surroundings.worker
        if accepted:
            runs = [_ended_run((claimed, ending, int(took * SECOND))) for claimed, ending, took, _ in accepted]
            self._bus.publish(events.RunsEnded(worker, runs))
        if stale:
            self._bus.publish(events.RunsRefused(worker, stale))
