"""What a worker itself costs a run: no-op tasks over the memory store, and over a store that costs nothing at all.

    python bench/worker_flood.py [--runs 200000] [--task async|thread|sleep] [--profile]

`worker` takes the claim and the finish from a store that only hands out rows, so that what is left is the worker's own.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Sequence
from uuid import UUID

from mainspring.core.ids import uuid7
from mainspring.core.model import Claimed, Ending, Instant, Lane, NewJob, TaskInfo, Verdict, WorkerInfo
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.stores.memory import MemoryStore
from mainspring.tasks.registry import Registry
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.worker import Worker

CLOCK = SystemClock()


async def nothing() -> None: ...


def nothing_in_a_thread() -> None: ...


async def a_millisecond() -> None:
    await asyncio.sleep(0.001)


TASKS = {"async": nothing, "thread": nothing_in_a_thread, "sleep": a_millisecond}


class FreeStore(MemoryStore):
    """Claims and finishes cost nothing here; the rows were made before."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Claimed] = []
        self.finished = 0

    async def claim(
        self,
        worker: UUID,
        *,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        count: int,
        suspects: bool = True,
        bytes_max: int = 8 * 1024 * 1024,
        namespace: str = "default",
        now: Instant | None = None,
    ) -> list[Claimed]:
        await asyncio.sleep(0)
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        await asyncio.sleep(0)
        self.finished += len(endings)
        return [Verdict.ACCEPTED] * len(endings)


async def flood(store: MemoryStore, task: str, runs: int, slots: int) -> float:
    registry = Registry()
    name = registry.add(TASKS[task]).name
    await store.open()
    await store.register(WorkerInfo(UUID(int=1), "bench", 1, (), 1, "", 30_000_000), [TaskInfo(name)])
    ids = [uuid7(time.time_ns() // 1000, CLOCK.random_bytes(10)) for _ in range(runs)]
    if isinstance(store, FreeStore):
        store.rows = [Claimed(i, 1, 1, 0, 0, name, b"{}", None, 0, 0, i, "default", 50, False, None, 0, 0) for i in ids]
    else:
        for start in range(0, runs, 10_000):
            await store.submit([NewJob(i, Lane("default", "default", name)) for i in ids[start : start + 10_000]])
    worker = Worker(store, registry, CLOCK, Bus(), WorkerSettings(slots=slots))
    begun = time.perf_counter()
    running = asyncio.create_task(worker.run())
    while not await is_done(store, runs):
        await asyncio.sleep(0.002)
    passed = time.perf_counter() - begun
    worker.request_stop()
    await running
    return passed


async def is_done(store: MemoryStore, runs: int) -> bool:
    if isinstance(store, FreeStore):
        return store.finished >= runs
    counts = (await store.stats()).by_status
    return not counts.get("queued") and not counts.get("running")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--task", choices=TASKS, default="async")
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--store", choices=["worker", "memory"], default="worker")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    store = FreeStore() if chosen.store == "worker" else MemoryStore()
    profile = cProfile.Profile()
    if chosen.profile:
        profile.enable()
    passed = asyncio.run(flood(store, chosen.task, chosen.runs, chosen.slots))
    if chosen.profile:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    microseconds = passed / chosen.runs * 1e6
    print(
        json.dumps(
            {
                "workload": f"worker {chosen.task}",
                "store": chosen.store,
                "runs": chosen.runs,
                "per_second": round(chosen.runs / passed),
                "microseconds_per_run": round(microseconds, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
