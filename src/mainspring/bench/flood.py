"""flood: a backlog of runs whose handlers do nothing, drained by workers as users start them.

The floor is measured before and after, in the same schema on the same machine; its mean is what counts.
"""

from __future__ import annotations

from mainspring.bench import floor as floors
from mainspring.bench.draining import drained, opened_worker
from mainspring.bench.measured import Measured, Options, latency_of
from mainspring.bench.places import Place
from mainspring.bench.submitting import submit

RUNS = 200_000


async def measure(place: Place, options: Options) -> Measured:
    runs = options.runs or RUNS
    options = options.with_processes(place.kind)
    floor = place.floor()
    way = await floors.fastest(floor, runs)
    before = await floors.measure(floor, runs, way)
    await place.rest()
    submitted_per_second = await submit(place.url, runs)
    await place.settle()
    async with opened_worker(place, options) as (worker, gate):
        used = await drained(place, worker, gate)
    tally = await place.tally()
    latency = latency_of(await place.spans("started_at", "finished_at"))
    await place.rest()
    after = await floors.measure(floor, runs, way)
    return Measured(
        runs=runs,
        tally=tally,
        latency=latency,
        latency_of="claimed to ended",
        cpu_seconds_per_10k=used.per_10k(runs),
        per_second=tally.distinct / tally.seconds,
        floor_per_second=(before.per_second + after.per_second) / 2,
        settings={"concurrency": options.concurrency, "processes": options.processes},
        more={"submitted_per_second": submitted_per_second, "floor": [before.shown(), after.shown()]},
    )
