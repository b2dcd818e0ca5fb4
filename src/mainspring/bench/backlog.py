"""backlog: what it costs to claim, and to fire, in front of few waiting jobs and in front of many.

The same number of runs is claimed from a short and from a long line, and the same number of jobs is fired out of few
and out of many that are stored, in this process and through the store's verbs: nothing else is measured. A ratio near
1 says that the cost does not grow with what waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from statistics import median
from uuid import uuid4

from mainspring.bench.measured import Latency, Measured, Options, Tally, Used, latency_of
from mainspring.bench.places import Place
from mainspring.bench.timetable import LANE, PAYLOAD, one_time, opened_store, store_far, store_jobs
from mainspring.core.ids import uuid7
from mainspring.core.model import DueOccurrence, Firing, NewJob, TaskInfo, WorkerInfo
from mainspring.ports.store import Store

FEW = 10_000
RUNS = 100_000
_BATCH = 500
_BATCHES = 20
_SECOND = 1_000_000


async def measure(place: Place, options: Options) -> Measured:
    many = max(options.runs or RUNS, _BATCH)
    few = min(FEW, many)
    async with opened_store(place) as store:
        worker = await _register(store)
        server, own = place.cpu_seconds(), time.process_time()
        small = await _costs(place, store, worker, few, 0)
        large = await _costs(place, store, worker, many, few)
        used_python, after = time.process_time() - own, place.cpu_seconds()
    used = Used(used_python, None if server is None or after is None else after - server)
    claim, fire = _middle(large[0]) / _middle(small[0]), _middle(large[1]) / _middle(small[1])
    return Measured(
        runs=many,
        tally=Tally(many, many, 0, 0, 0, 0),
        latency=_latency(large[0] + large[1]),
        latency_of=f"one batch of {_BATCH} claimed, or found due and fired",
        cpu_seconds_per_10k=used.per_10k(many + few),
        settings={"few": few, "many": many, "batch": _BATCH},
        more={
            "ratio": round(max(claim, fire), 3),
            "claim": _shown(small[0], large[0], claim),
            "fire": _shown(small[1], large[1], fire),
        },
    )


async def _register(store: Store) -> WorkerInfo:
    worker = WorkerInfo(uuid4(), "bench", os.getpid(), ("default",), _BATCH, "", 600 * _SECOND)
    await store.register(worker, [TaskInfo(LANE.task)])
    return worker


async def _costs(
    place: Place, store: Store, worker: WorkerInfo, waiting: int, stored: int
) -> tuple[list[float], list[float]]:
    """Seconds of each batch, once so many runs wait and once so many jobs are stored."""
    now = await store.now()
    await store_jobs(store, (NewJob(uuid7(now, os.urandom(10)), LANE, payload=PAYLOAD) for _ in range(waiting)))
    await store_far(store, waiting - stored)
    await place.settle()

    async def claim() -> int:
        return len(await store.claim(worker.id, tasks=(LANE.task,), queues=None, count=_BATCH))

    claims = await _timed(claim, min(_BATCHES, waiting // _BATCH))
    fires = await _timed(await _firing(store), _BATCHES)
    return claims, fires


async def _firing(store: Store) -> Callable[[], Awaitable[int]]:
    """Jobs that are due by now, beside those that are far."""
    now = await store.now()
    await store_jobs(store, (one_time(now, now + number) for number in range(_BATCH * _BATCHES)))

    async def fire() -> int:
        jobs = await store.due_jobs(None, until=await store.now(), limit=_BATCH)
        firings = [
            Firing(job.id, job.version, (DueOccurrence(job.next_at, job.scheduled_at),), fired_through=job.next_at)
            for job in jobs
            if job.next_at is not None and job.scheduled_at is not None
        ]
        return sum(one.applied for one in await store.fire(firings))

    return fire


async def _timed(act: Callable[[], Awaitable[int]], batches: int) -> list[float]:
    seconds = []
    for _ in range(batches):
        started = time.perf_counter()
        done = await act()
        seconds.append(time.perf_counter() - started)
        if done != _BATCH:
            raise RuntimeError(f"{done} of a batch of {_BATCH} were there")
    return seconds


def _middle(seconds: list[float]) -> float:
    return median(seconds)


def _latency(seconds: list[float]) -> Latency:
    return latency_of([each * _SECOND for each in seconds])


def _shown(small: list[float], large: list[float], ratio: float) -> dict[str, float]:
    return {
        "few_ms": round(_middle(small) * 1000, 3),
        "many_ms": round(_middle(large) * 1000, 3),
        "ratio": round(ratio, 3),
    }
