"""What the SQLite store costs by itself: no worker, no handlers, no HTTP. Prints one JSON object.

    python bench/sqlite_store.py [--runs 100000] [--folder /somewhere/on/the/disk/to/measure]

On a machine that does other things, look at `cpu_us_per_run`: a million divided by it is what one core can do.
`floor` is a bare loop of the same claim and the same move to history, without guards, on the same disk in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

from mainspring.core.ids import uuid7
from mainspring.core.model import (
    SECOND,
    Claimed,
    DueOccurrence,
    Ending,
    Firing,
    Kind,
    Lane,
    NewJob,
    TaskInfo,
    WorkerInfo,
)
from mainspring.core.states import Outcome, State
from mainspring.ports.store import Topic
from mainspring.stores.sqlite.driver import LIBRARY_VERSION, sqlite3
from mainspring.stores.sqlite.store import SqliteStore

LANE = Lane("default", "default", "work")
PAYLOAD = b'{"to":"a@b.c","body":"hello"}'


def new_job(at: int, lane: Lane = LANE) -> NewJob:
    return NewJob(uuid7(at, os.urandom(10)), lane, payload=PAYLOAD)


def completed(run: Claimed, result: bytes | None = None) -> Ending:
    return Ending(run.id, run.fence, State.COMPLETED, Outcome.COMPLETED, result=result)


async def fresh(folder: Path, name: str, tasks: int = 1) -> tuple[SqliteStore, UUID]:
    store = SqliteStore(folder / f"{name}.db")
    await store.migrations.up()
    await store.open()
    worker = WorkerInfo(uuid7(await store.now(), os.urandom(10)), "here", os.getpid(), (), 10, "0", 30 * SECOND)
    names = ["work", *(f"work{number}" for number in range(1, tasks))]
    await store.register(worker, [TaskInfo(task) for task in names])
    return store, worker.id


async def fill(store: SqliteStore, count: int, lanes: int = 1) -> float:
    """Ids a hundred to the millisecond, as one submitter makes them."""
    named = [LANE, *(LANE._replace(task=f"work{number}") for number in range(1, lanes))]
    now = await store.now()
    batches = [
        [new_job(now + 10 * (start + n), named[(start + n) % lanes]) for n in range(min(1000, count - start))]
        for start in range(0, count, 1000)
    ]
    began = time.perf_counter()
    for batch in batches:
        await store.submit(batch)
    return time.perf_counter() - began


async def flood(folder: Path, count: int, batch: int, lanes: int = 1, *, results: bool = False) -> dict[str, float]:
    store, worker = await fresh(folder, f"flood-{batch}-{lanes}-{results}", lanes)
    filled = await fill(store, count, lanes)
    tasks = ["work", *(f"work{number}" for number in range(1, lanes))]
    done = 0
    claiming = 0.0
    cpu = time.process_time()
    began = time.perf_counter()
    while True:
        mark = time.perf_counter()
        claimed = await store.claim(worker, tasks=tasks, queues=None, count=batch)
        claiming += time.perf_counter() - mark
        if not claimed:
            break
        endings = [completed(run, b'{"n":%d}' % done if results else None) for run in claimed]
        verdicts = await store.finish(worker, endings)
        done += sum(verdict == 0 for verdict in verdicts)
    took = time.perf_counter() - began
    cpu = time.process_time() - cpu
    await store.close()
    assert done == count, f"{done} of {count} ended"
    return {
        "submit_per_second": round(count / filled),
        "claim_and_finish_per_second": round(done / took),
        "claim_us": round(claiming / done * 1e6, 2),
        "finish_us": round((took - claiming) / done * 1e6, 2),
        "cpu_us_per_run": round(cpu / done * 1e6, 2),
    }


def floor(folder: Path, count: int, batch: int = 500) -> dict[str, float]:
    """Claim, then move to history, with literals and no guards, straight on a connection."""
    connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
    script = Path(__file__).with_name("sqlite_floor.sql").read_text("utf-8")
    create, fill_one, claim, copy, remove = script.split("-- next\n")
    connection.executescript(create)
    rows = [(uuid7(number, os.urandom(10)).bytes, number, PAYLOAD) for number in range(count)]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(fill_one, rows)
    connection.execute("COMMIT")
    done = 0
    cpu = time.process_time()
    began = time.perf_counter()
    while True:
        connection.execute("BEGIN IMMEDIATE")
        claimed = connection.execute(claim, (batch,)).fetchall()
        connection.execute("COMMIT")
        if not claimed:
            break
        numbers = json.dumps([number for number, _, _ in claimed])
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(copy, (numbers,))
        connection.execute(remove, (numbers,))
        connection.execute("COMMIT")
        done += len(claimed)
    took = time.perf_counter() - began
    cpu = time.process_time() - cpu
    connection.close()
    return {"claim_and_finish_per_second": round(done / took), "cpu_us_per_run": round(cpu / done * 1e6, 2)}


async def pickup(folder: Path, count: int) -> dict[str, float]:
    """Submit, hint, claim: from the call of submit until the claimed run is in hand."""
    store, worker = await fresh(folder, "pickup")
    woken = asyncio.Event()

    stop = store.subscribe(lambda _: woken.set())
    taken: list[float] = []
    for _ in range(count):
        woken.clear()
        began = time.perf_counter()
        submitting = asyncio.ensure_future(store.submit([new_job(time.time_ns() // 1000)]))
        await woken.wait()
        (claimed,) = await store.claim(worker, tasks=["work"], queues=None, count=10)
        taken.append(time.perf_counter() - began)
        await submitting
        await store.finish(worker, [completed(claimed)])
    stop()
    await store.close()
    return spread(taken)


async def idle_claim(folder: Path, count: int) -> dict[str, float]:
    store, worker = await fresh(folder, "idle")
    await fill(store, 1)
    (claimed,) = await store.claim(worker, tasks=["work"], queues=None, count=1)
    await store.finish(worker, [completed(claimed)])
    taken = await timed(count, lambda: store.claim(worker, tasks=["work"], queues=None, count=10))
    await store.close()
    return spread(taken)


async def producers(folder: Path, count: int, at_once: int) -> dict[str, float]:
    """Single submits from many tasks at once: what shares a transaction and its flush."""
    store, _ = await fresh(folder, f"producers-{at_once}")

    async def produce() -> None:
        for _ in range(count // at_once):
            await store.submit([new_job(time.time_ns() // 1000)])

    began = time.perf_counter()
    await asyncio.gather(*(produce() for _ in range(at_once)))
    took = time.perf_counter() - began
    await store.close()
    return {"submits_per_second": round(count / took)}


async def herd(folder: Path, count: int) -> dict[str, float]:
    """Delayed jobs that are all due: read what is due and fire it."""
    store, _ = await fresh(folder, "herd")
    now = await store.now()
    for start in range(0, count, 1000):
        jobs = [
            NewJob(
                uuid7(now + 10 * (start + n), os.urandom(10)),
                LANE,
                kind=Kind.DELAYED,
                payload=PAYLOAD,
                next_at=now + start + n,
            )
            for n in range(1000)
        ]
        await store.submit(jobs)
    fired = 0
    began = time.perf_counter()
    while due := await store.due_jobs(None, until=now + 3600 * SECOND, limit=5000):
        firings = [
            Firing(job.id, job.version, runs=(DueOccurrence(job.next_at or 0, job.scheduled_at or 0),)) for job in due
        ]
        fired += sum(one.applied for one in await store.fire(firings))
    took = time.perf_counter() - began
    await store.close()
    return {"fired_per_second": round(fired / took), "fired": fired}


async def polling(folder: Path) -> dict[str, float]:
    """What it costs to listen for what other processes write, while nothing happens."""
    store, _ = await fresh(folder, "polling")
    heard: list[Topic] = []
    stop = store.subscribe(lambda hint: heard.append(hint.topic))
    cpu = time.process_time()
    await asyncio.sleep(4)
    used = time.process_time() - cpu
    stop()
    await store.close()
    return {"share_of_a_core_percent": round(used / 4 * 100, 3)}


async def timed(count: int, call: Callable[[], Awaitable[object]]) -> list[float]:
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    return taken


def spread(taken: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(taken, n=100)
    return {"p50_ms": round(cuts[49] * 1e3, 3), "p95_ms": round(cuts[94] * 1e3, 3), "p99_ms": round(cuts[98] * 1e3, 3)}


def flush_ms(folder: Path) -> float:
    """How long the disk takes to make one small write durable."""
    taken = []
    with (folder / "flush").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1e3, 3)


async def measure(folder: Path, runs: int) -> dict[str, object]:
    return {
        "sqlite": ".".join(map(str, LIBRARY_VERSION)),
        "flush_ms": flush_ms(folder),
        "floor": floor(folder, runs),
        "flood_100": await flood(folder, runs, 100),
        "flood_500": await flood(folder, runs, 500),
        "flood_500_with_results": await flood(folder, runs, 500, results=True),
        "flood_500_over_5_lanes": await flood(folder, runs, 500, lanes=5),
        "pickup": await pickup(folder, 1000),
        "idle_claim": await idle_claim(folder, 1000),
        "producer_1": await producers(folder, 2000, 1),
        "producers_50": await producers(folder, 20000, 50),
        "herd": await herd(folder, min(runs, 50_000)),
        "polling": await polling(folder),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mainspring-bench-", dir=given.folder))
    try:
        print(json.dumps(asyncio.run(measure(folder, given.runs)), indent=1))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
