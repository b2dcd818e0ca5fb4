"""The PostgreSQL store beside a bare SQL loop that does the same writes: one process, one connection, durable commits.

    python -m bench.postgres_store [--store URL] [--runs 50000] [--passes 3] [--batches 100,500,1000]

Without a URL it starts a server of its own, with fsync. Each pass measures the floor and the store one after the
other, so that a noisy machine slows both; printed are medians, and their ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

import asyncpg

from mainspring.core.ids import uuid7
from mainspring.core.model import SECOND, Ending, Lane, NewJob, TaskInfo, WorkerInfo
from mainspring.core.states import Outcome, State
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.shared import load_queries
from tests.support.servers import PostgresServer

FLOOR = load_queries(Path(__file__).parents[1] / "src/mainspring/bench/floor_postgres.sql")
SCHEMA = "mainspring_bench"
LANE = Lane("default", "default", "noop")


class Figure(NamedTuple):
    per_second: float
    cpu: float


def main() -> None:
    options = read_options()
    print(f"flush latency: {flush_microseconds():.0f} µs (write of 8 kB and fdatasync, median)")
    if options.store:
        asyncio.run(measure(options.store, options))
        return
    server = PostgresServer(options.version, own=True)
    server.start()
    try:
        asyncio.run(measure(server.create_database(), options))
    finally:
        server.stop()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a PostgreSQL URL; default: a server of its own")
    parser.add_argument("--version", type=int, default=15)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--batches", default="100,500,1000")
    return parser.parse_args()


async def measure(url: str, options: argparse.Namespace) -> None:
    store = PostgresStore(f"{url}?schema={SCHEMA}")
    await store.migrations.up()
    await store.open()
    connection = await asyncpg.connect(url, server_settings={"jit": "off"})
    print(await connection.fetchval("select version()"))
    worker = await register(store)
    for batch in map(int, options.batches.split(",")):
        passes = [await one_pass(store, connection, worker, batch, options.runs) for _ in range(options.passes)]
        submitted = statistics.median(one[0] for one in passes)
        floor = Figure(*(statistics.median(column) for column in zip(*(one[1] for one in passes), strict=True)))
        drained = Figure(*(statistics.median(column) for column in zip(*(one[2] for one in passes), strict=True)))
        print(
            f"batch {batch:5}: floor {floor.per_second:8,.0f}/s {floor.cpu:5.1f} µs   claim + finish "
            f"{drained.per_second:8,.0f}/s {drained.cpu:5.1f} µs   ratio {drained.per_second / floor.per_second:4.0%}, "
            f"by processor time {floor.cpu / drained.cpu:4.0%}   submit {submitted:8,.0f}/s"
        )
    for batch in (1, 10):
        print(f"submit {batch:2} at a time: {await small_submits(store, batch):7.2f} ms each")
    await connection.execute(f"drop schema {SCHEMA} cascade")
    await connection.close()
    await store.close()


async def register(store: PostgresStore) -> UUID:
    identity = uuid4()
    info = WorkerInfo(identity, host="bench", pid=1, queues=(), slots=1000, version="bench", lease=30 * SECOND)
    await store.register(info, [TaskInfo(LANE.task)])
    return identity


async def one_pass(
    store: PostgresStore, connection: asyncpg.Connection, worker: UUID, batch: int, runs: int
) -> tuple[float, Figure, Figure]:
    submitted = await fill(store, runs)
    drained = await measured(connection, runs, drain(store, worker, batch, runs))
    await prepare_floor(connection, runs)
    bare = await measured(connection, runs, floor(connection, batch, runs))
    await connection.execute(floor_sql("drop"))
    return submitted, bare, drained


async def measured(connection: asyncpg.Connection, runs: int, work: Awaitable[None]) -> Figure:
    """Per second, and the processor time of client and server together for one run."""
    pids = [
        row[0]
        for row in await connection.fetch("select pid from pg_stat_activity where backend_type = 'client backend'")
    ]
    cpu, began = processor_seconds(pids), time.perf_counter()
    await work
    passed = time.perf_counter() - began
    return Figure(runs / passed, (processor_seconds(pids) - cpu) / runs * 1e6)


def processor_seconds(pids: Sequence[int]) -> float:
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists():
            ticks += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


async def fill(store: PostgresStore, runs: int) -> float:
    """Runs a second, in batches of ten thousand."""
    now = await store.now()
    jobs = [NewJob(uuid7(now + 10 * number, os.urandom(10)), LANE) for number in range(runs)]
    began = time.perf_counter()
    for start in range(0, runs, 10_000):
        await store.submit(jobs[start : start + 10_000])
    return runs / (time.perf_counter() - began)


async def drain(store: PostgresStore, worker: UUID, batch: int, runs: int) -> None:
    done = 0
    while claimed := await store.claim(worker, tasks=[LANE.task], queues=None, count=batch):
        verdicts = await store.finish(
            worker, [Ending(run.id, run.fence, State.COMPLETED, Outcome.COMPLETED) for run in claimed]
        )
        done += sum(verdict == 0 for verdict in verdicts)
    assert done == runs, f"{done} of {runs}"


def floor_sql(name: str) -> str:
    return FLOOR[name].replace("{schema}", SCHEMA).replace("{{}}", "{}")


async def prepare_floor(connection: asyncpg.Connection, runs: int) -> None:
    await connection.execute(floor_sql("create"))
    await connection.execute(floor_sql("fill"), runs, time.time_ns() // 1000)


async def floor(connection: asyncpg.Connection, batch: int, runs: int) -> None:
    claim, finish, worker = floor_sql("claim"), floor_sql("finish"), uuid4()
    done = 0
    while rows := await connection.fetch(claim, batch, worker, time.time_ns() // 1000):
        done += len(await connection.fetch(finish, *floor_columns(rows), time.time_ns() // 1000))
    assert done == runs, f"{done} of {runs}"


def floor_columns(rows: Sequence[asyncpg.Record]) -> list[list[object]]:
    return [[row[0] for row in rows], [row[1] for row in rows], [10] * len(rows), [None] * len(rows)]


async def small_submits(store: PostgresStore, batch: int) -> float:
    now = await store.now()
    samples = []
    for _ in range(200):
        jobs = [NewJob(uuid7(now, os.urandom(10)), LANE) for _ in range(batch)]
        began = time.perf_counter()
        await store.submit(jobs)
        samples.append((time.perf_counter() - began) * 1000)
    return statistics.median(samples)


def flush_microseconds() -> float:
    samples = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(200):
            os.pwrite(file.fileno(), os.urandom(8192), 0)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            samples.append((time.perf_counter() - began) * 1e6)
    return statistics.median(samples)


if __name__ == "__main__":
    main()
