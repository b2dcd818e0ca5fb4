"""What a worker itself costs a run: no-op tasks from a store whose claims and finishes cost nothing, or from memory.

    python bench/worker_flood.py [--runs 200000] [--task async|thread|sleep] [--store free|memory] [--profile]

Wall time says little on a busy machine; `cpu_microseconds_per_run` is what the process really used.
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


class CountingStore(MemoryStore):
    """Says when all runs have been finished."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self.missing = runs
        self.all_finished = asyncio.Event()

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        verdicts = await self.take(worker, endings, now)
        self.missing -= verdicts.count(Verdict.ACCEPTED)
        if self.missing <= 0:
            self.all_finished.set()
        return verdicts

    async def take(self, worker: UUID, endings: Sequence[Ending], now: Instant | None) -> list[Verdict]:
        return await super().finish(worker, endings, now=now)


class FreeStore(CountingStore):
    """Hands out rows that were made before."""

    def __init__(self, rows: list[Claimed]) -> None:
        super().__init__(len(rows))
        self.rows = rows
        self.position = 0

    async def claim(self, *_: object, count: int, **__: object) -> list[Claimed]:
        await asyncio.sleep(0)
        taken = self.rows[self.position : self.position + count]
        self.position += len(taken)
        return taken

    async def take(self, worker: UUID, endings: Sequence[Ending], now: Instant | None) -> list[Verdict]:
        del worker, now
        await asyncio.sleep(0)
        return [Verdict.ACCEPTED] * len(endings)


async def given(kind: str, task: str, runs: int) -> CountingStore:
    ids = [uuid7(time.time_ns() // 1000, CLOCK.random_bytes(10)) for _ in range(runs)]
    if kind == "free":
        return FreeStore(
            [Claimed(i, 1, 1, 0, 0, task, b"{}", None, 0, 0, i, "default", 50, False, None, 0, 0) for i in ids]
        )
    store = CountingStore(runs)
    await store.register(WorkerInfo(UUID(int=1), "bench", 1, (), 1, "", 30_000_000), [TaskInfo(task)])
    for start in range(0, runs, 10_000):
        await store.submit([NewJob(i, Lane("default", "default", task)) for i in ids[start : start + 10_000]])
    return store


async def flood(kind: str, task: str, runs: int, slots: int) -> tuple[float, float]:
    """Wall and processor seconds from the worker's start to the last recorded end."""
    registry = Registry()
    name = registry.add(TASKS[task]).name
    store = await given(kind, name, runs)
    worker = Worker(store, registry, CLOCK, Bus(), WorkerSettings(slots=slots))
    begun, used = time.perf_counter(), time.process_time()
    running = asyncio.create_task(worker.run())
    await store.all_finished.wait()
    passed, spent = time.perf_counter() - begun, time.process_time() - used
    worker.request_stop()
    await running
    return passed, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--task", choices=TASKS, default="async")
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--store", choices=["free", "memory"], default="free")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    profile = cProfile.Profile()
    if chosen.profile:
        profile.enable()
    passed, spent = asyncio.run(flood(chosen.store, chosen.task, chosen.runs, chosen.slots))
    if chosen.profile:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    answer = {
        "workload": f"worker {chosen.task}",
        "store": chosen.store,
        "runs": chosen.runs,
        "per_second": round(chosen.runs / passed),
        "cpu_microseconds_per_run": round(spent / chosen.runs * 1e6, 2),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
