"""Runs are claimed, and how their attempts ended is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
from mainspring.core.ids import instant_of_id
from mainspring.core.model import Claimed, Ending, Instant, Lane, Verdict
from mainspring.core.states import Event, ForbiddenTransition, State
from mainspring.stores.postgres.base import LOOKED_BACK
from mainspring.stores.postgres.connection import Address, affected, columns_of
from mainspring.stores.postgres.ending import Ended, EndingRuns, Left

if TYPE_CHECKING:
    import asyncpg

KEPT = frozenset((State.RETRYING, State.QUEUED, State.UNKNOWN, State.PARKED))
ENDED = frozenset((State.COMPLETED, State.FAILED, State.CANCELLED))
BYTES_MAX = 8 * 1024 * 1024
_LANE = 15
_PLACE = 16  # higher priority first, then ready_at
_ID = itemgetter(0)
_RANK = itemgetter(_PLACE)
_make = Claimed._make


class Working(EndingRuns):
    """What workers do with runs."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._last_turn: dict[str, str] = {}
        self._doubtful: set[UUID] = set()

    # --- claim

    async def claim(
        self,
        worker: UUID,
        *,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        count: int,
        suspects: bool = True,
        bytes_max: int = BYTES_MAX,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> list[Claimed]:
        if count <= 0 or not tasks:
            return []
        if worker in self._doubtful:
            await self._give_back_unseen(worker)
        last = self._last_turn.get(namespace, "")
        names = None if queues is None else list(queues)
        arguments = (worker, list(tasks), names, count, suspects, bytes_max, namespace, now, last)
        rows = await self._claim_rows(worker, arguments)
        if not rows:
            return []
        numbers = {row[_LANE] for row in rows}
        lanes = await self._lanes_of(numbers)
        claimed = _by_turns(rows, {number: lanes[number] for number in numbers}, last)
        self._last_turn[namespace] = claimed[-1].queue
        self._held.setdefault(worker, set()).update([one.id for one in claimed])
        return claimed

    async def _claim_rows(self, worker: UUID, arguments: Iterable[object]) -> list[asyncpg.Record]:
        try:
            return await self._write("claim", *arguments)
        except StoreUnavailable as error:
            if error.unknown_outcome:
                self._doubtful.add(worker)
            raise

    async def _give_back_unseen(self, worker: UUID) -> None:
        """A claim whose answer was lost may have happened: a living worker would hold its runs for ever."""

        async def body(connection: asyncpg.Connection) -> set[int]:
            rows = await self._rows(connection, "claimed_unseen", worker, sorted(self._held.get(worker, ())))
            return await self._give_back(connection, [row["id"] for row in rows])

        lanes = await self._transact(body)
        self._doubtful.discard(worker)
        await self._lanes_ready(lanes)

    async def _give_back(self, connection: asyncpg.Connection, ids: Sequence[UUID]) -> set[int]:
        rows = await self._rows(connection, "give_back", ids)
        return {row["lane"] for row in rows}

    # --- finish

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        """One statement for what completed plainly, and steps of the same transaction for everything else."""
        for ending in endings:
            if ending.state not in ENDED and ending.state not in KEPT:
                raise ForbiddenTransition(State.RUNNING, Event.EXPIRE)
        if not endings:
            return []
        verdicts, lanes = await self._transact(lambda connection: self._finish(connection, worker, endings, now))
        self._held.get(worker, set()).difference_update([ending.id for ending in endings])
        await self._lanes_ready(lanes)
        return verdicts

    async def _finish(
        self, connection: asyncpg.Connection, worker: UUID, endings: Sequence[Ending], now: Instant | None
    ) -> tuple[list[Verdict], set[int]]:
        plain = [ending for ending in endings if ending.state is State.COMPLETED and ending.reason is None]
        count = await self._finish_completed(connection, worker, plain, now) if plain else 0
        if count == len(endings):
            return [Verdict.ACCEPTED] * count, set()
        done = await self._finished_here(connection, plain) if count else set()
        rest = [ending for ending in endings if (ending.id, ending.fence) not in done]
        instant = await self._instant(connection, now)
        accepted, refused, lanes = await self._finish_others(connection, worker, rest, instant)
        accepted |= done
        verdicts = []
        for ending in endings:
            name = (ending.id, ending.fence)
            if name in accepted:
                accepted.remove(name)  # the same ending twice in one batch: the second is stale
                verdicts.append(Verdict.ACCEPTED)
            else:
                verdicts.append(Verdict.CANCEL_REQUESTED if name in refused else Verdict.STALE)
        return verdicts, lanes

    async def _finish_completed(
        self, connection: asyncpg.Connection, worker: UUID, endings: Sequence[Ending], now: Instant | None
    ) -> int:
        """How many could be finished so; no row comes back, which is a good part of the cost of a batch."""
        results = [ending.result for ending in endings]
        attempts = [ending.attempts for ending in endings]
        status = await connection.execute(
            self._sql["finish_completed"],
            [ending.id for ending in endings],
            [ending.fence for ending in endings],
            results if any(result is not None for result in results) else None,
            attempts if any(attempts) else None,
            worker,
            now,
        )
        return affected(status)

    async def _finished_here(self, connection: asyncpg.Connection, endings: Sequence[Ending]) -> set[tuple[UUID, int]]:
        ids = [ending.id for ending in endings]
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        return {(row[0], row[1]) for row in await self._rows(connection, "finished_here", ids, since)}

    async def _finish_others(
        self, connection: asyncpg.Connection, worker: UUID, endings: Sequence[Ending], now: Instant
    ) -> tuple[set[tuple[UUID, int]], set[tuple[UUID, int]], set[int]]:
        """What was accepted, what met a requested cancel, and the lanes in which something became ready."""
        locked = await self._lock_runs(connection, [ending.id for ending in endings])
        refused: set[tuple[UUID, int]] = set()
        taken: dict[tuple[UUID, int], Ending] = {}
        for ending in endings:
            name = (ending.id, ending.fence)
            row = locked.get(ending.id)
            if row is None or row["state"] != State.RUNNING or row["fence"] != ending.fence or row["worker"] != worker:
                continue
            if row["cancel_requested_at"] is not None and ending.state is not State.CANCELLED:
                refused.add(name)
            else:
                taken.setdefault(name, ending)
        ended = [_ended(ending) for ending in taken.values() if ending.state in ENDED]
        left = [_left(ending, now) for ending in taken.values() if ending.state in KEPT]
        lanes = await self._leave_workers(connection, left) | await self._end_runs(connection, ended, now)
        return set(taken), refused - set(taken), lanes

    async def progress(self, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
        """Sets the progress (JSON text) of running runs, guarded by their fence."""
        if not items:
            return []
        newest = {run_id: (run_id, fence, text) for run_id, fence, text in items}
        rows = await self._write("set_progress", *columns_of(list(newest.values()), 3), worker)
        written = {row["id"] for row in rows}
        return [run_id in written and newest[run_id][1] == fence for run_id, fence, _ in items]


def _by_turns(rows: list[asyncpg.Record], lanes: dict[int, Lane], last: str) -> list[Claimed]:
    """Rows come in the order of their places on disk; queues take turns, beginning after the one that gave last."""
    rows.sort(key=_ID)
    rows.sort(key=_RANK)  # stable: by rank, then by id; two sorts by plain values are cheaper than one by pairs
    if len(lanes) == 1:
        (lane,) = lanes.values()
        return _claimed(rows, lane)
    order = {row[0]: number for number, row in enumerate(rows)}
    queues: dict[str, list[Claimed]] = {}
    for number, lane in lanes.items():
        queues.setdefault(lane.queue, []).extend(_claimed([row for row in rows if row[_LANE] == number], lane))
    for line in queues.values():
        line.sort(key=lambda one: order[one.id])
    lines = [queues[name] for name in sorted(queues, key=lambda name: (name <= last, name))]
    longest = max(map(len, lines))
    return [line[turn] for turn in range(longest) for line in lines if turn < len(line)]


def _claimed(rows: Sequence[asyncpg.Record], lane: Lane) -> list[Claimed]:
    """The statement answers the fields in their order, but for the two that the lane tells; a job id that is the run's
    own comes as None."""
    task, queue = lane.task, lane.queue
    return [
        _make((id_, fence, attempt, spent, deaths, task, payload, document, scheduled, started, job or id_, queue,
               priority, catch_up, attempts, lateness, created))
        for id_, fence, attempt, spent, deaths, payload, document, scheduled, started, job, priority, catch_up, attempts,
        lateness, created, _, _ in rows
    ]  # fmt: skip


def _ended(ending: Ending) -> Ended:
    return Ended(
        ending.id,
        ending.state,
        reason=ending.reason,
        result=ending.result,
        error=ending.error,
        spent=ending.spent,
        deaths=ending.deaths,
        attempts=ending.attempts,
    )


def _left(ending: Ending, now: Instant) -> Left:
    return Left(
        ending.id,
        ending.state,
        ready_at=now + ending.wait if ending.state is State.RETRYING else None,
        reason=ending.reason,
        error=ending.error,
        spent=ending.spent,
        deaths=ending.deaths,
        attempts=ending.attempts,
        taken_back=0 if ending.started else 1,
    )
