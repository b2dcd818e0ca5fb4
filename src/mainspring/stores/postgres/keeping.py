"""The small tables: queues, idempotency keys, logs, numbers; and what is thrown away in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.model import DAY, HOUR, SECOND, Instant, JobState, LogLine, QueueInfo, Stats
from mainspring.core.states import State
from mainspring.ports.store import IdempotentAnswer
from mainspring.stores.postgres.base import Base
from mainspring.stores.postgres.connection import affected, columns_of
from mainspring.stores.postgres.rows import queue_of

if TYPE_CHECKING:
    import asyncpg

IDEMPOTENCY_KEPT = DAY
IN_FLIGHT_MAX = 60 * SECOND
DEAD_LETTERS_KEPT = 30 * DAY
LOST_WORKERS_KEPT = HOUR
DAYS_AHEAD = 3
PARTITIONED = {"history": "finished_at", "logs": "at"}


class Keeping(Base):
    """Queues, idempotency, logs, numbers, upkeep."""

    # --- queues

    async def queues(self, namespace: str = "default") -> list[QueueInfo]:
        return [queue_of(row) for row in await self._read("queues", namespace, None)]

    async def pause_queue(self, name: str, paused: bool, namespace: str = "default") -> QueueInfo:  # noqa: FBT001 - the port's
        """A claim that began before the commit may still take from it; one that begins after the answer does not."""
        await self._write("set_paused", namespace, name, paused)
        if not paused:
            self._ready((name,))
        return await self._queue(name, namespace)

    async def set_queue_limits(self, name: str, limits: str | None, namespace: str = "default") -> QueueInfo:
        await self._write("set_limits", namespace, name, limits)
        return await self._queue(name, namespace)

    async def _queue(self, name: str, namespace: str) -> QueueInfo:
        return queue_of((await self._read("queues", namespace, name))[0])

    # --- idempotency

    async def begin_idempotent(
        self, key: str, body_hash: bytes, *, namespace: str = "default", now: Instant | None = None
    ) -> IdempotentAnswer:
        """Each way to win is one conditional write, so that of two senders at once one wins."""

        async def body(connection: asyncpg.Connection) -> IdempotentAnswer:
            instant = await self._instant(connection, now)
            name = (namespace, key, body_hash, instant)
            fresh = await self._rows(connection, "begin_idempotent", *name, IDEMPOTENCY_KEPT)
            if fresh:
                return IdempotentAnswer(mine=True, created_at=instant)
            taken = await self._rows(connection, "take_over_idempotent", *name, IN_FLIGHT_MAX)
            if taken:
                return IdempotentAnswer(mine=True, created_at=taken[0]["created_at"])
            rows = await self._rows(connection, "idempotent", namespace, key)
            if not rows:  # forgotten this very moment: the caller may well ask again
                return IdempotentAnswer(mine=False, created_at=instant)
            row = rows[0]
            if row["body_hash"] != body_hash:
                return IdempotentAnswer(mine=False, created_at=row["created_at"], same_body=False)
            return IdempotentAnswer(False, row["created_at"], status=row["status"], body=row["body"])

        return await self._transact(body)

    async def end_idempotent(self, key: str, status: int, body: bytes, *, namespace: str = "default") -> None:
        await self._write("end_idempotent", namespace, key, status, body)

    async def forget_idempotent(self, key: str, *, namespace: str = "default") -> None:
        """The request failed before anything was stored: the key is free again."""
        await self._write("forget_idempotent", namespace, key)

    # --- logs

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        """Best effort, after the fact, never part of a finish."""
        if lines:
            await self._write("append_logs", *columns_of(lines, 6))

    async def logs(self, run_id: UUID, *, after: int = 0, limit: int = 1000) -> list[tuple[int, LogLine]]:
        """Lines in order, each with its number; `after` is exclusive."""
        rows = await self._read("logs", run_id, after, limit)
        return [(row[0], LogLine(*row[1:])) for row in rows]

    # --- numbers

    async def stats(self, namespace: str = "default") -> Stats:
        """Counts of what is live; of a very long line only that it is very long."""
        runs = await self._read("count_runs", namespace)
        jobs = await self._read("count_jobs", namespace)
        others = (await self._read("count_others", namespace))[0]
        counts: Counter[str] = Counter()
        for row in runs:
            counts[State(row["state"]).word] += row["runs"]
        for row in jobs:
            counts[JobState(row["state"]).word] += row["jobs"]
        oldest = [row["oldest"] for row in runs if row["oldest"] is not None]
        return Stats(
            by_status=dict(counts),
            queues=tuple(await self.queues(namespace)),
            workers=others["workers"],
            schedulers=others["schedulers"],
            oldest_ready_at=min(oldest, default=None),
            next_fire_at=others["next_fire_at"],
            dead_letters=others["dead_letters"],
        )

    # --- upkeep

    async def upkeep(self, *, history_days: int = 30, log_days: int = 7, now: Instant | None = None) -> dict[str, int]:
        """Each part is a transaction of its own, so that one that must wait for another program holds up no other."""
        instant = await self.now() if now is None else now
        kept = {"history": history_days, "logs": log_days}
        done = {"partitions": 0}
        for table, days in kept.items():
            present = await self._partitions(table)
            done["partitions"] += await self._add_partitions(table, present, instant)
            done[table] = await self._drop_partitions(table, present, instant - days * DAY)
        done["idempotency"] = await self._delete("drop_answers", instant - IDEMPOTENCY_KEPT)
        done["dead_letters"] = await self._delete("drop_dead_letters", instant - DEAD_LETTERS_KEPT)
        done["workers"] = await self._delete("drop_lost_workers", instant - LOST_WORKERS_KEPT)
        await self._delete("drop_silent_schedulers", instant - DAY)
        return done

    async def _partitions(self, table: str) -> set[str]:
        rows = await self._read("partitions", f'"{self._address.schema}".{table}')
        return {row["relname"] for row in rows}

    async def _add_partitions(self, table: str, present: set[str], now: Instant) -> int:
        today = now // DAY
        missing = [day for day in range(today, today + DAYS_AHEAD + 1) if partition_of(table, day) not in present]
        for day in missing:
            steps = ("new_partition", "fill_partition", "attach_partition")
            await self._bounded([self._day_sql(step, table, day) for step in steps], unless=partition_of(table, day))
        return len(missing)

    async def _drop_partitions(self, table: str, present: set[str], before: Instant) -> int:
        """How many partitions went, and rows that lay outside of them."""
        old = [name for name in present if (day := day_of(table, name)) is not None and (day + 1) * DAY <= before]
        for name in old:
            await self._bounded([self._sql["drop_partition"].replace("{partition}", name)])
        return len(old) + await self._delete(f"drop_old_{table}", before)

    def _day_sql(self, name: str, table: str, day: int) -> str:
        sql = self._sql[name].replace("{partition}", partition_of(table, day)).replace("{table}", table)
        sql = sql.replace("{column}", PARTITIONED[table])
        return sql.replace("{first}", str(day * DAY)).replace("{end}", str((day + 1) * DAY))

    async def _bounded(self, statements: Sequence[str], *, unless: str | None = None) -> None:
        """The hot tables wait less than a second for this; where that is not enough, the next upkeep tries again."""

        async def body(connection: asyncpg.Connection) -> None:
            await connection.execute(self._sql["bound_locks"])
            await self._rows(connection, "lock_upkeep", self._address.schema)
            if unless is not None:
                present = await self._rows(connection, "partition_exists", f'"{self._address.schema}".{unless}')
                if present[0][0]:
                    return
            for statement in statements:
                await connection.execute(statement)

        await self._transact(body)

    async def _delete(self, name: str, before: Instant) -> int:
        async def body(connection: asyncpg.Connection) -> int:
            return affected(await connection.execute(self._sql[name], before))

        return await self._transact(body)


def partition_of(table: str, day: int) -> str:
    return f"{table}_{datetime.fromtimestamp(day * DAY // SECOND, UTC):%Y%m%d}"


def day_of(table: str, name: str) -> int | None:
    text = name.removeprefix(f"{table}_")
    if len(text) != 8 or not text.isdecimal():
        return None
    instant = datetime(int(text[:4]), int(text[4:6]), int(text[6:]), tzinfo=UTC)
    return int(instant.timestamp()) * SECOND // DAY
