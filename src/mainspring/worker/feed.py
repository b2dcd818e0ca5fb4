"""Claims runs: as many as there are slots for, and ahead only what was measured to start within a moment."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import SECOND, Claimed, RunFilter
from mainspring.core.states import State
from mainspring.observe import events
from mainspring.worker.completer import Completer
from mainspring.worker.executor import SUSPICIOUS_DEATHS, Executor
from mainspring.worker.outcome import Finished, given_back
from mainspring.worker.surroundings import Surroundings

_POLL_TRUSTED = 1.0
_POLL_IDLE = 0.1
_POLL_BUSY = 0.02
_POLL_WITHOUT_RIGHT = 0.02
_BUSY_FOR = 1.0
_BACKLOG_MAX = 10_000
_RECONCILE_AFTER = (0.0, 2.0, 10.0)  # seconds after a lost reply: the claim may have come through late
_RECONCILE_MAX = 1000


class Feed:
    """One `step` is at most one claim."""

    def __init__(
        self, around: Surroundings, executor: Executor, completer: Completer, *, tasks: tuple[str, ...]
    ) -> None:
        self._surroundings = around
        self._store = around.store
        self._clock = around.clock
        self._bus = around.bus
        self._settings = around.settings
        self._executor = executor
        self._completer = completer
        self._tasks = tasks
        self.holds_right: Callable[[float], bool] = _always
        self._hints = 0
        self._dry_at_hint = -1  # the store had nothing more, and this many hints had come by then
        self._dry_until = 0.0
        self._found_at = float("-inf")
        self._reconcile_at: list[float] = []
        self.stopped = False

    def hint(self, queue: str) -> bool:
        """Something became ready; True where that is for us."""
        queues = self._settings.queues
        if queues is not None and queue and queue not in queues:
            return False
        self._hints += 1
        return True

    async def step(self, now: float) -> float | None:
        """One claim at most; soon again while something waits here that might be stuck."""
        if self.stopped or not self._tasks:
            return None
        delay = await self._feed(now)
        return min(delay, self._settings.stuck_after / SECOND) if self._executor.queue else delay

    async def _feed(self, now: float) -> float:
        if self._reconcile_at and now >= self._reconcile_at[0]:
            await self._reconcile()
            del self._reconcile_at[0]
            return 0.0
        self._give_back_what_is_stuck(now)
        count = min(self._executor.room(now), self._settings.claim_max)
        if count <= 0 or self._completer.pending > _BACKLOG_MAX:
            return self._poll(now)
        if self._dry_at_hint == self._hints and now < self._dry_until:
            return self._dry_until - now
        if not self.holds_right(now):
            return _POLL_WITHOUT_RIGHT
        return await self._claim(count)

    def give_back(self, runs: list[Claimed]) -> None:
        for claimed in runs:
            self._completer.deliver(Finished(claimed, given_back(claimed), 0.0, 0))

    async def _claim(self, count: int) -> float:
        hints = self._hints
        worker = self._surroundings.worker
        try:
            claimed = await self._store.claim(
                worker,
                tasks=self._tasks,
                queues=self._settings.queues,
                count=count,
                suspects=not (self._executor.holds_suspect() or self._completer.holds_suspect()),
                namespace=self._settings.namespace,
            )
        except StoreUnavailable:
            now = self._clock.monotonic()
            self._reconcile_at = [now + delay for delay in _RECONCILE_AFTER]
            raise
        now = self._clock.monotonic()
        if worker != self._surroundings.worker:
            return 0.0  # revoked meanwhile: these went with the old id
        if claimed:
            self._found_at = now
            self._take(claimed)
        if len(claimed) == count:
            return 0.0
        self._dry_at_hint = hints
        self._dry_until = now + self._poll(now)
        return 0.0 if self._hints != hints else self._dry_until - now

    def _take(self, claimed: list[Claimed]) -> None:
        if self._bus.heard:
            self._bus.publish(events.RunsClaimed(self._surroundings.worker, claimed))
        if self.stopped:
            self.give_back(claimed)
            return
        suspects = [each for each in claimed if each.deaths >= SUSPICIOUS_DEATHS]
        if len(suspects) > 1:
            # A process holds at most one of these, so that one that kills again takes no other such run with it.
            self.give_back(suspects[1:])
            spared = {each.id for each in suspects[1:]}
            claimed = [each for each in claimed if each.id not in spared]
        self._executor.accept(claimed)

    def _give_back_what_is_stuck(self, now: float) -> None:
        if self._executor.stuck(now, self._settings.stuck_after / SECOND):
            self.give_back(self._executor.withdraw())

    async def _reconcile(self) -> None:
        """A claim whose reply was lost may have given us runs that we do not know of: they are given back."""
        where = RunFilter(
            namespace=self._settings.namespace, status=(State.RUNNING.word,), worker=self._surroundings.worker
        )
        runs = await self._store.list_runs(where, limit=_RECONCILE_MAX)
        known: set[tuple[UUID, int]] = {*self._executor.held(), *self._completer.held()}
        for run in runs:
            if run.state is State.RUNNING and (run.id, run.fence) not in known:
                claimed = _as_claimed(run.id, run.fence, run.attempt, run.spent, run.deaths, run.attempts)
                self.give_back([claimed])

    def _poll(self, now: float) -> float:
        if self._store.capabilities.hints:
            return _POLL_TRUSTED
        return _POLL_BUSY if now - self._found_at < _BUSY_FOR else _POLL_IDLE


def _as_claimed(run_id: UUID, fence: int, attempt: int, spent: int, deaths: int, attempts: str | None) -> Claimed:
    return Claimed(run_id, fence, attempt, spent, deaths, "", b"", None, 0, 0, run_id, "", 0, False, attempts, 0, 0)


def _always(_now: float) -> bool:
    return True
