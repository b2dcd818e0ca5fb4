"""Who lives: workers and their beats, those declared lost, what becomes of their runs; schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.decide import Next, Tally
from mainspring.core.losses import Loss, LostAttempt, borne_until, lose
from mainspring.core.model import BeatAnswer, Duration, Evidence, Instant, TaskInfo, WorkerInfo
from mainspring.core.states import State
from mainspring.ports.store import Rescued
from mainspring.stores.postgres.connection import columns_of
from mainspring.stores.postgres.ending import Ended, EndingRuns, Left
from mainspring.stores.postgres.rows import worker_of

if TYPE_CHECKING:
    import asyncpg


class Living(EndingRuns):
    """Beats go over a connection of their own, so that an exhausted pool accuses nobody."""

    async def register(self, worker: WorkerInfo, tasks: Sequence[TaskInfo], *, now: Instant | None = None) -> Instant:
        async def body(connection: asyncpg.Connection) -> tuple[Instant, set[str]]:
            instant = await self._instant(connection, now)
            await self._rows(
                connection, "register_worker", worker.id, worker.namespace, worker.host, worker.pid,
                list(worker.queues), worker.slots, worker.version, worker.lease, worker.keeper, instant,
            )  # fmt: skip
            if not tasks:
                return instant, set()
            told = {task.name: (task.name, task.signature, task.defaults) for task in tasks}
            columns = columns_of([told[name] for name in sorted(told)], 3)
            opened = await self._rows(connection, "register_tasks", worker.namespace, *columns, instant)
            return instant, {row["queue"] for row in opened}

        instant, opened = await self._transact(body)
        self._ready(opened)
        return instant

    async def known_tasks(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[TaskInfo]:
        """What workers registered; all of it, or the names asked."""
        rows = await self._read("known_tasks", namespace, None if names is None else list(names))
        return [TaskInfo(*row) for row in rows]

    async def beat(
        self, workers: Sequence[UUID], *, keeper: UUID | None = None, now: Instant | None = None
    ) -> list[BeatAnswer]:
        """One statement renews them all, a second one tells what is asked of them."""
        if not workers:
            return []
        ids = sorted(set(workers))
        rows = await self._vital.statement(self._sql["beat"], ids, keeper, now, writes=True)
        alive = {row["id"]: row for row in rows}
        asked: dict[UUID, list[tuple[UUID, int]]] = {}
        if alive:
            for row in await self._vital.statement(self._sql["cancels_of_workers"], sorted(alive)):
                asked.setdefault(row["worker"], []).append((row["id"], row["fence"]))
        instant = rows[0]["now"] if rows else (now if now is not None else await self.now())
        return [
            BeatAnswer(True, alive[one]["draining"], tuple(asked.get(one, ())), instant)
            if one in alive
            else BeatAnswer(known=False, now=instant)
            for one in workers
        ]

    async def drain(self, worker: UUID) -> bool:
        """Asks the worker to drain; False where it is unknown."""
        rows = await self._write("drain_worker", worker)
        self._call_workers(row["id"] for row in rows)
        return bool(rows)

    async def deregister(self, worker: UUID, *, now: Instant | None = None) -> None:
        """A worker has stopped by itself. Runs it still holds are rescued like those of a dead one."""
        await self._write("forget_worker", worker, now)
        self._held.pop(worker, None)

    async def workers(self, *, lost: bool = False) -> list[WorkerInfo]:
        """With how many runs each holds."""
        return [worker_of(row) for row in await self._read("workers", lost)]

    # --- loss

    async def declare_lost(
        self,
        worker: UUID,
        evidence: Evidence,
        *,
        beat: int | None = None,
        culprit: UUID | None = None,
        now: Instant | None = None,
    ) -> bool:
        """A claim in flight holds the worker's row: it is either over before this, or sees it and takes nothing."""
        arguments = (worker, evidence.value, beat, culprit, now)
        rows = await self._vital.statement(self._sql["declare_lost"], *arguments, writes=True)
        self._call_workers(row["id"] for row in rows)
        return bool(rows)

    async def rescue(self, *, limit: int = 500, random_value: float = 0.5, now: Instant | None = None) -> list[Rescued]:
        """Ends the lost attempts of workers that were declared lost or are unknown, each guarded by its fence."""

        async def body(connection: asyncpg.Connection) -> tuple[list[Rescued], set[int]]:
            held = await self._rows(connection, "lost_runs", limit)
            if not held:
                return [], set()
            instant = await self._instant(connection, now)
            found = {row["id"]: row for row in held if instant >= _borne_until(row)}
            locked = await self._lock_runs(connection, found)
            # A finish may have come first: its row is gone or has another fence, and is left alone.
            rows = [row for run_id, row in found.items() if _still_lost(row, locked.get(run_id))]
            asked = {run_id: each["cancel_requested_at"] for run_id, each in locked.items()}
            losses = [(row, lose(_lost_attempt(row, asked[row["id"]]), random_value, instant)) for row in rows]
            ended = [_end_of(row, loss) for row, loss in losses if loss.decision.state.ended]
            left = [_rest_of(row, loss, instant) for row, loss in losses if not loss.decision.state.ended]
            ready = await self._leave_workers(connection, left) | await self._end_runs(connection, ended, instant)
            return [_rescued(row, loss.decision) for row, loss in losses], ready

        rescued, ready = await self._transact(body)
        await self._lanes_ready(ready)
        return rescued

    # --- schedulers

    async def scheduler_beat(
        self, scheduler: UUID, *, host: str, silent_after: Duration, now: Instant | None = None
    ) -> list[UUID]:
        """Says that this scheduler lives; answers all that do."""
        instant = await self.now() if now is None else now
        await self._vital.statement(self._sql["scheduler_beat"], scheduler, host, instant, writes=True)
        rows = await self._vital.statement(self._sql["schedulers"], instant - silent_after)
        return [row["id"] for row in rows]

    async def scheduler_stop(self, scheduler: UUID) -> None:
        await self._write("scheduler_stop", scheduler)

    async def schedulers(
        self, *, silent_after: Duration, now: Instant | None = None
    ) -> list[tuple[UUID, str, Instant]]:
        instant = await self.now() if now is None else now
        return [
            (row["id"], row["host"], row["beat_at"]) for row in await self._read("schedulers", instant - silent_after)
        ]


def _borne_until(row: asyncpg.Record) -> Instant:
    return borne_until(row["document"], row["evidence"], row["lost_at"], row["lease"])


def _still_lost(row: asyncpg.Record, locked: asyncpg.Record | None) -> bool:
    if locked is None or locked["state"] != State.RUNNING:
        return False
    return bool(locked["fence"] == row["fence"] and locked["worker"] == row["worker"])


def _lost_attempt(row: asyncpg.Record, cancel_requested_at: Instant | None) -> LostAttempt:
    return LostAttempt(
        row["attempt"],
        row["worker"],
        row["started_at"],
        Tally(row["spent"], row["deaths"], cancel_requested_at is not None),
        row["document"],
        row["attempts"],
        row["evidence"],
        culprit=bool(row["culprit"] == row["id"]),
    )


def _end_of(row: asyncpg.Record, loss: Loss) -> Ended:
    decision, attempts, error = loss
    return Ended(
        row["id"],
        decision.state,
        reason=decision.reason,
        error=error,
        spent=decision.spent,
        deaths=decision.deaths,
        attempts=attempts,
    )


def _rest_of(row: asyncpg.Record, loss: Loss, now: Instant) -> Left:
    decision, attempts, error = loss
    return Left(
        row["id"],
        decision.state,
        ready_at=now + decision.wait if decision.state is State.RETRYING else None,
        reason=decision.reason,
        error=error,
        spent=decision.spent,
        deaths=decision.deaths,
        attempts=attempts,
    )


def _rescued(row: asyncpg.Record, decision: Next) -> Rescued:
    return Rescued(row["id"], row["worker"], int(decision.state), decision.reason or decision.outcome.value)
