"""A schema of its own on a PostgreSQL server."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mainspring.bench.floor_postgres import PostgresFloor
from mainspring.bench.machine import cores, cpu_seconds, family, name_of, parent_of
from mainspring.bench.measured import Tally
from mainspring.bench.places import Description
from mainspring.stores.postgres.connection import connect, read_address
from mainspring.stores.postgres.store import PostgresStore
from mainspring.stores.shared import load_queries

if TYPE_CHECKING:
    import asyncpg

_QUERIES = load_queries(Path(__file__).with_name("counting_postgres.sql"))
_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size")
_PROBES = 50


class PostgresPlace:
    kind = "postgresql"

    def __init__(self, url: str) -> None:
        self.schema = f"mainspring_bench_{os.urandom(4).hex()}"
        self.url = _with_schema(url, self.schema)
        self._address = read_address(self.url)
        self._connection: asyncpg.Connection | None = None
        self._postmaster: int | None = None

    async def create(self) -> None:
        self._connection = await connect(self._address)
        self._postmaster = await self._find_postmaster()
        await self._execute("create_schema")
        store = PostgresStore(self.url)
        try:
            await store.migrations.up()
        finally:
            await store.close()

    async def remove(self) -> None:
        if self._connection is not None:
            await self._execute("remove_schema")
            await self._connection.close()

    async def describe(self) -> Description:
        connection = self._connected()
        settings: dict[str, object] = {
            name: await connection.fetchval(self._sql("setting"), name) for name in _SETTINGS
        }
        settings |= {"flush_ms": await self._flush_milliseconds(), "cores": cores()}
        version = str(await connection.fetchval(self._sql("setting"), "server_version"))
        return Description({"postgresql": version}, settings)

    def floor(self) -> PostgresFloor:
        return PostgresFloor(self._address.url, self.schema, self.cpu_seconds)

    async def queued(self) -> bool:
        return await self._connected().fetchval(self._sql("queued")) is not None

    async def live(self) -> bool:
        return await self._connected().fetchval(self._sql("live")) is not None

    async def tally(self) -> Tally:
        return Tally(*map(int, await self._connected().fetchrow(self._sql("tally"))))

    async def spans(self, begin: str, end: str) -> Sequence[int]:
        return [int(row[0]) for row in await self._connected().fetch(self._sql("spans", begin=begin, end=end))]

    async def skipped(self) -> int:
        return int(await self._connected().fetchval(self._sql("skipped")))

    async def overtaken(self) -> int:
        return int(await self._connected().fetchval(self._sql("overtaken")))

    async def by_priority(self) -> Sequence[tuple[int, int, int]]:
        rows = await self._connected().fetch(self._sql("by_priority"))
        return [(int(priority), int(first), int(last)) for priority, first, last in rows]

    async def rest(self) -> None:
        await self._connected().execute("CHECKPOINT", timeout=60)

    async def settle(self) -> None:
        for name in ("settle_runs", "settle_jobs", "settle_lanes"):
            await self._execute(name)

    def cpu_seconds(self) -> float | None:
        """Of the server whole: its living processes, and those that have ended."""
        if self._postmaster is None:
            return None
        living = family(self._postmaster)
        return cpu_seconds(living) + cpu_seconds([self._postmaster], with_reaped=True) - cpu_seconds([self._postmaster])

    def _sql(self, name: str, **columns: str) -> str:
        return _QUERIES[name].format(schema=self.schema, **columns)

    def _connected(self) -> asyncpg.Connection:
        assert self._connection is not None
        return self._connection

    async def _execute(self, name: str) -> None:
        await self._connected().execute(self._sql(name), timeout=60)

    async def _find_postmaster(self) -> int | None:
        backend, is_local = await self._connected().fetchrow(self._sql("server"))
        parent = parent_of(backend) if is_local else None
        return parent if parent is not None and name_of(parent).startswith("postgres") else None

    async def _flush_milliseconds(self) -> float:
        """What a commit costs beyond its round trip: the flush of the log."""
        await self._execute("create_probe")
        try:
            writes = median([await self._timed("probe_write") for _ in range(_PROBES)])
            reads = median([await self._timed("probe_read") for _ in range(_PROBES)])
        finally:
            await self._execute("drop_probe")
        return round(max(0.0, writes - reads) * 1000, 3)

    async def _timed(self, name: str) -> float:
        sql = self._sql(name)
        started = time.perf_counter()
        await self._connected().execute(sql)
        return time.perf_counter() - started


def _with_schema(url: str, schema: str) -> str:
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "schema"]
    return urlunsplit(parts._replace(query=urlencode([*query, ("schema", schema)])))
