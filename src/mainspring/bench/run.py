"""The one entry: finds the workload, gives it a place of its own, and puts the result together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module

from mainspring.app.programs import run_loop
from mainspring.bench.machine import versions
from mainspring.bench.measured import Measured, Options
from mainspring.bench.places import Description, Place, place_for
from mainspring.core.errors import InvalidInput

Workload = Callable[[Place, Options], Awaitable[Measured]]

# A workload is one function `measure(place, options)` in a file of its own, imported when it is asked for.
WORKLOADS: dict[str, str] = {
    "flood": "mainspring.bench.flood:measure",
    "producer": "mainspring.bench.producer:measure",
    "pickup": "mainspring.bench.pickup:measure",
    "punctual": "mainspring.bench.punctual:measure",
    "herd": "mainspring.bench.herd:measure",
    "backlog": "mainspring.bench.backlog:measure",
}


def run(
    workload: str,
    *,
    store: str,
    runs: int | None = None,
    seconds: float | None = None,
    passes: int = 1,
    concurrency: int | None = None,
    processes: int | None = None,
    stored: int | None = None,
) -> dict[str, object]:
    """Carries out the workload; of several passes the median one answers, and all are listed."""
    if workload not in WORKLOADS:
        raise InvalidInput.at("workload", f"{workload!r} is no workload; it can be {', '.join(WORKLOADS)}")
    options = Options(runs, seconds, concurrency, processes, stored)
    return run_loop(_run(workload, store, options, max(1, passes)))


async def _run(workload: str, store: str, options: Options, passes: int) -> dict[str, object]:
    module, _, name = WORKLOADS[workload].partition(":")
    measure: Workload = getattr(import_module(module), name)
    made = [await _one_pass(measure, store, options) for _ in range(passes)]
    made.sort(key=lambda each: each.measured.standing)
    chosen = made[(passes - 1) // 2]
    result = {"workload": workload, **chosen.fields()}
    if passes > 1:
        keys = ("per_second", "floor_per_second", "ratio", "p50_ms", "p99_ms")
        result["passes"] = [{key: fields[key] for key in keys} for fields in (each.fields() for each in made)]
    return result


@dataclass(frozen=True, slots=True)
class _Pass:
    kind: str
    measured: Measured
    server: Description

    def fields(self) -> dict[str, object]:
        return {
            **self.measured.fields(),
            "store": self.kind,
            "versions": versions() | self.server.versions,
            "settings": self.measured.settings | self.server.settings,
        }


async def _one_pass(measure: Workload, store: str, options: Options) -> _Pass:
    place = place_for(store)
    try:
        await place.create()
        server = await place.describe()
        return _Pass(place.kind, await measure(place, options), server)
    finally:
        await place.remove()
