"""The floor on SQLite: one connection, WAL and FULL as the store has them, statements over whole batches."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from uuid import uuid4

from mainspring.bench.floor import FloorPass
from mainspring.stores.shared import load_queries
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.driver import sqlite3

_QUERIES = load_queries(Path(__file__).with_name("floor_sqlite.sql"))
_COMPLETED = 10


class SqliteFloor:
    """Tables in the file of the bench, beside those of the store."""

    connections = (1,)  # a second one would only wait for the first

    def __init__(self, path: Path) -> None:
        self._file = File(path)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def drain(self, runs: int, *, connections: int, batch: int) -> FloorPass:
        assert connections == 1
        return await asyncio.to_thread(self._drain, runs, batch)

    def _drain(self, runs: int, batch: int) -> FloorPass:
        connection = self._file.open_writer()
        try:
            self._fill(connection, runs)
            python, started = time.process_time(), time.perf_counter()
            ended = _loop(connection, batch)
            seconds, python = time.perf_counter() - started, time.process_time() - python
            for name in ("drop_runs", "drop_history"):
                connection.execute(_QUERIES[name])
        finally:
            connection.close()
        assert ended == runs, f"the floor ended {ended} of {runs} runs"
        return FloorPass(1, batch, runs, seconds, python, None)

    def _fill(self, connection: sqlite3.Connection, runs: int) -> None:
        for name in ("create_runs", "create_claim_index", "create_history", "create_history_index"):
            connection.execute(_QUERIES[name])
        connection.execute("BEGIN IMMEDIATE")
        now = time.time_ns() // 1000
        head = (now // 1000).to_bytes(6, "big") + b"\x70\x00\x80\x00"
        connection.executemany(_QUERIES["fill"], ((head + number.to_bytes(6, "big"), now) for number in range(runs)))
        connection.execute("COMMIT")


def _loop(connection: sqlite3.Connection, batch: int) -> int:
    worker, total = uuid4().bytes, 0
    while True:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(_QUERIES["claim"], (worker, time.time_ns() // 1000, batch)).fetchall()
        connection.execute("COMMIT")
        if not rows:
            return total
        ids = b"".join([row[0] for row in rows])
        endings = "[" + ",".join([f'[{row[1]},{_COMPLETED},"null"]' for row in rows]) + "]"
        connection.execute("BEGIN IMMEDIATE")
        total += connection.execute(_QUERIES["record"], (ids, endings, time.time_ns() // 1000)).rowcount
        connection.execute(_QUERIES["remove"], (ids, endings))
        connection.execute("COMMIT")
