"""producer: the flood with a live producer, who submits beside the workers that drain."""

from __future__ import annotations

import time
from dataclasses import replace

from mainspring.bench import floor as floors
from mainspring.bench.draining import drained, opened_worker
from mainspring.bench.measured import Measured, Options, latency_of
from mainspring.bench.places import Place
from mainspring.bench.submitting import submit

RUNS = 200_000
BATCH = 1000


async def measure(place: Place, options: Options) -> Measured:
    runs = options.runs or RUNS
    floor = place.floor()
    way = await floors.fastest(floor, runs)
    before = await floors.measure(floor, runs, way)
    await place.rest()
    rates: list[float] = []
    async with opened_worker(place, options) as (worker, gate):

        async def produce() -> None:
            await gate()
            rates.append(await submit(place.url, runs, batch=BATCH))

        own = time.process_time()
        used = await drained(place, worker, produce)
        used = replace(used, python=used.python + time.process_time() - own)
    tally = await place.tally()
    latency = latency_of(await place.spans("created_at", "started_at"))
    await place.rest()
    after = await floors.measure(floor, runs, way)
    return Measured(
        runs=runs,
        tally=tally,
        latency=latency,
        latency_of="stored to claimed",
        cpu_seconds_per_10k=used.per_10k(runs),
        per_second=tally.distinct / tally.seconds,
        floor_per_second=(before.per_second + after.per_second) / 2,
        settings={"concurrency": options.concurrency, "processes": options.processes, "submit_batch": BATCH},
        more={"submitted_per_second": rates[0], "floor": [before.shown(), after.shown()]},
    )
