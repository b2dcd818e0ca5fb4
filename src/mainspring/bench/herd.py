"""herd: many jobs of three priorities, all due at one instant.

What counts is when the first and the last of them start, and that none of them starts before one of a higher priority.
"""

from __future__ import annotations

from mainspring.bench.draining import flags_of
from mainspring.bench.measured import Measured, Options, latency_of
from mainspring.bench.places import Place
from mainspring.bench.punctual import watched
from mainspring.bench.roles import started
from mainspring.bench.timetable import one_time, opened_store, soon, store_far, store_jobs

RUNS = 100_000
PRIORITIES = (90, 50, 10)


async def measure(place: Place, options: Options) -> Measured:
    runs = options.runs or RUNS
    stored = options.stored or 0
    async with opened_store(place) as store:
        await store_far(store, stored)
        now, at = await store.now(), await soon(store, runs)
        jobs = (one_time(now, at, priority=PRIORITIES[number % len(PRIORITIES)]) for number in range(runs))
        await store_jobs(store, jobs)
        await place.settle()
        async with started("up", place.url, "--port", "0", *flags_of(options)) as system:
            used = await watched(place, system, store.now, at, at, runs)
    tally = await place.tally()
    late = await place.spans("scheduled_at", "started_at")
    return Measured(
        runs=runs,
        tally=tally,
        latency=latency_of(late),
        latency_of="due to started",
        cpu_seconds_per_10k=used.per_10k(runs),
        per_second=tally.distinct / tally.seconds,
        settings={"stored": stored, "priorities": list(PRIORITIES), **options.worker},
        more={
            "first_ms": round(min(late) / 1000, 3),
            "last_ms": round(max(late) / 1000, 3),
            "overtaken": await place.overtaken(),
            "by_priority": {
                str(priority): {"first_ms": round(first / 1000, 3), "last_ms": round(last / 1000, 3)}
                for priority, first, last in await place.by_priority()
            },
        },
    )
