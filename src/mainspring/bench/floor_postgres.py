"""The floor on PostgreSQL: asyncpg, arrays, one or two connections in one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from mainspring.bench.floor import FloorPass
from mainspring.stores.shared import load_queries

if TYPE_CHECKING:
    import asyncpg

_QUERIES = load_queries(Path(__file__).with_name("floor_postgres.sql"))
# Plans by index and planned once, whatever statistics say of tables that fill and empty within seconds.
_SESSION = {"jit": "off", "enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
_COMPLETED = 10


class PostgresFloor:
    """Tables in one schema, which must exist."""

    connections = (1, 2)

    def __init__(self, url: str, schema: str, store_cpu: Callable[[], float | None]) -> None:
        self._url = url
        self._store_cpu = store_cpu
        self._sql = {name: sql.format(schema=schema) for name, sql in _QUERIES.items()}
        self._open: list[asyncpg.Connection] = []

    async def open(self) -> None:
        import asyncpg

        self._open = [await asyncpg.connect(self._url, server_settings=_SESSION) for _ in range(2)]

    async def close(self) -> None:
        for connection in self._open:
            await connection.close()

    async def drain(self, runs: int, *, connections: int, batch: int) -> FloorPass:
        main = self._open[0]
        await main.execute(self._sql["create"])
        try:
            await main.execute("CHECKPOINT")
            await main.execute(self._sql["fill"], runs, _now())
            await main.execute(self._sql["settle"])
            store, python, started = self._store_cpu(), time.process_time(), time.perf_counter()
            ended = await asyncio.gather(*(self._loop(each, batch) for each in self._open[:connections]))
            seconds, python = time.perf_counter() - started, time.process_time() - python
            store = None if store is None else (self._store_cpu() or store) - store
        finally:
            await main.execute(self._sql["drop"])
        assert sum(ended) == runs, f"the floor ended {sum(ended)} of {runs} runs"
        return FloorPass(connections, batch, runs, seconds, python, store)

    async def _loop(self, connection: asyncpg.Connection, batch: int) -> int:
        claim = await connection.prepare(self._sql["claim"])
        finish = await connection.prepare(self._sql["finish"])
        worker, total = uuid4(), 0
        while rows := await claim.fetch(batch, worker, _now()):
            ids: list[UUID] = [row[0] for row in rows]
            fences: list[int] = [row[1] for row in rows]
            statuses, results = [_COMPLETED] * len(rows), [b"null"] * len(rows)
            total += len(await finish.fetch(ids, fences, statuses, results, _now()))
        return total


def _now() -> int:
    return time.time_ns() // 1000
