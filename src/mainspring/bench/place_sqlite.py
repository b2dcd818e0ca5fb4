"""A file of its own beside the one that is named."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from mainspring.app.stores import sqlite_path
from mainspring.bench.floor_sqlite import SqliteFloor
from mainspring.bench.machine import cores, flush_milliseconds
from mainspring.bench.measured import Tally
from mainspring.bench.places import Description
from mainspring.stores.shared import load_queries
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.driver import sqlite3
from mainspring.stores.sqlite.store import SqliteStore

T = TypeVar("T")

_QUERIES = load_queries(Path(__file__).with_name("counting_sqlite.sql"))


class SqlitePlace:
    """In a folder of its own, so that the side files of the store vanish with it."""

    kind = "sqlite"

    def __init__(self, url: str) -> None:
        self._folder = sqlite_path(url).parent / f"mainspring-bench-{os.urandom(4).hex()}"
        self._path = self._folder / "bench.db"
        self.url = f"sqlite:///{self._path}"

    async def create(self) -> None:
        self._folder.mkdir(parents=True)
        store = SqliteStore(self._path)
        try:
            await store.migrations.up()
        finally:
            await store.close()

    async def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    async def describe(self) -> Description:
        settings: dict[str, object] = {
            "journal": await self._ask("journal"),
            "synchronous": "FULL",
            "page_size": await self._ask("pages"),
            "flush_ms": round(await asyncio.to_thread(flush_milliseconds, self._folder), 3),
            "cores": cores(),
        }
        return Description({"sqlite": sqlite3.sqlite_version}, settings)

    def floor(self) -> SqliteFloor:
        return SqliteFloor(self._path)

    async def queued(self) -> bool:
        return bool(await self._ask("queued"))

    async def live(self) -> bool:
        return bool(await self._ask("live"))

    async def tally(self) -> Tally:
        rows = await self._read(lambda connection: connection.execute(_QUERIES["tally"]).fetchall())
        return Tally(*rows[0])

    async def spans(self, begin: str, end: str) -> Sequence[int]:
        sql = _QUERIES["spans"].format(begin=begin, end=end)
        return [row[0] for row in await self._read(lambda connection: connection.execute(sql).fetchall())]

    async def skipped(self) -> int:
        return await self._count("skipped")

    async def overtaken(self) -> int:
        return await self._count("overtaken")

    async def by_priority(self) -> Sequence[tuple[int, int, int]]:
        return await self._read(lambda connection: connection.execute(_QUERIES["by_priority"]).fetchall())

    async def rest(self) -> None:
        await asyncio.to_thread(self._rest)

    async def settle(self) -> None: ...

    def cpu_seconds(self) -> float | None:
        """SQLite runs inside of the worker: its share is in Python's."""
        return None

    def _rest(self) -> None:
        connection = File(self._path).open_writer()
        try:
            connection.execute(_QUERIES["rest"]).fetchall()
        finally:
            connection.close()

    async def _count(self, name: str) -> int:
        return await self._read(lambda connection: int(connection.execute(_QUERIES[name]).fetchone()[0]))

    async def _ask(self, name: str) -> object:
        answer: object = await self._read(lambda connection: connection.execute(_QUERIES[name]).fetchone()[0])
        return answer

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._read_here, work)

    def _read_here(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = File(self._path).open_reader()
        try:
            return work(connection)
        finally:
            connection.close()
