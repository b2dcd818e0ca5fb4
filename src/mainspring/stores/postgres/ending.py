"""How runs leave their worker: into history, or back to where they wait. Only for rows that the transaction holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.model import Instant, Kind
from mainspring.core.states import State
from mainspring.stores.postgres.base import Base
from mainspring.stores.postgres.connection import columns_of

if TYPE_CHECKING:
    import asyncpg

OVERLAP = "overlap"
ASKED_TO_STOP = (State.RUNNING, State.PARKED)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ends: what its history row says beside what the run knew. None keeps what it knew; `result` and,
    where an attempt ended (`spent` is told), `error` are as they are told."""

    id: UUID
    state: int
    reason: str | None = None
    result: bytes | None = None
    error: str | None = None
    spent: int | None = None
    deaths: int | None = None
    attempts: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """How a run goes on without its worker. `taken_back` is 1 where its handler never began."""

    id: UUID
    state: int
    ready_at: Instant | None
    reason: str | None
    error: str | None
    spent: int
    deaths: int
    attempts: str | None
    taken_back: int = 0


class EndingRuns(Base):
    """Steps of transactions; each answers the lanes in which something became ready."""

    async def _end_runs(self, connection: asyncpg.Connection, ended: Sequence[Ended], now: Instant) -> set[int]:
        """Into history; whoever waited for the end of a recurring job's run is released."""
        if not ended:
            return set()
        columns = columns_of([astuple(end) for end in sorted(ended, key=lambda end: end.id)], 8)
        rows = await self._rows(connection, "end_runs", *columns, now)
        return await self._release(connection, {row["job_id"] for row in rows if row["kind"] == Kind.RECURRING})

    async def _leave_workers(self, connection: asyncpg.Connection, left: Sequence[Left]) -> set[int]:
        if not left:
            return set()
        rows = await self._rows(connection, "leave_workers", *columns_of([astuple(one) for one in left], 9))
        return {row["lane"] for row in rows if row["state"] == State.QUEUED}

    async def _release(self, connection: asyncpg.Connection, jobs: Collection[UUID]) -> set[int]:
        if not jobs:
            return set()
        rows = await self._rows(connection, "release_overlap", sorted(jobs))
        return {row["lane"] for row in rows}

    async def _lock_runs(self, connection: asyncpg.Connection, ids: Iterable[UUID]) -> dict[UUID, asyncpg.Record]:
        """Rows of `jobs` first, then runs: the order in which everybody locks."""
        wanted = sorted(set(ids))
        await self._rows(connection, "lock_jobs_of_runs", wanted)
        return {row["id"]: row for row in await self._rows(connection, "lock_runs", wanted)}

    async def _cancel_locked(
        self, connection: asyncpg.Connection, runs: Iterable[asyncpg.Record], now: Instant
    ) -> tuple[list[UUID], list[UUID], set[int]]:
        """What waits ends cancelled, what runs is asked to stop: (ended, asked, lanes that became ready)."""
        ended = [row["id"] for row in runs if row["state"] not in ASKED_TO_STOP]
        asked = [row["id"] for row in runs if row["state"] in ASKED_TO_STOP]
        if asked:
            await self._rows(connection, "ask_cancel", asked, now)
        lanes = await self._end_runs(connection, [Ended(run_id, State.CANCELLED) for run_id in ended], now)
        return ended, asked, lanes
