"""The bare SQL floor: the least that claims with a fence and ends with history, without any Mainspring round it.

Whatever the product adds is charged against it, in the same run on the same machine. The statements lie beside this
file and change only with a decision record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mainspring.bench.measured import Used
from mainspring.worker.settings import WorkerSettings

# The batches that a worker claims and finishes by, and half of them.
_LARGEST = max(WorkerSettings().claim_max, WorkerSettings().finish_max)
BATCHES = (_LARGEST // 2, _LARGEST)
_TRIAL_RUNS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class FloorPass:
    """One drain: how it was done and what came of it. `store_seconds` is None where the store has no processes."""

    connections: int
    batch: int
    runs: int
    seconds: float
    python_seconds: float
    store_seconds: float | None

    @property
    def per_second(self) -> float:
        return self.runs / self.seconds

    def shown(self) -> dict[str, object]:
        used = Used(self.python_seconds, self.store_seconds)
        return {
            "connections": self.connections,
            "batch": self.batch,
            "per_second": round(self.per_second, 1),
            "cpu_seconds_per_10k": used.per_10k(self.runs),
        }


class Floor(Protocol):
    """The loop on one kind of store, in tables of its own inside of the bench's place."""

    @property
    def connections(self) -> tuple[int, ...]:
        """How many are worth trying."""
        ...

    async def open(self) -> None: ...

    async def drain(self, runs: int, *, connections: int, batch: int) -> FloorPass:
        """Fills fresh tables with runs, drains them and drops them; only the drain is timed."""
        ...

    async def close(self) -> None: ...


async def fastest(floor: Floor, runs: int) -> FloorPass:
    """Short trials of every way; the fastest is the one to be measured against."""
    few = min(runs, _TRIAL_RUNS_MAX)
    await floor.open()
    try:
        trials = [
            await floor.drain(few, connections=connections, batch=batch)
            for connections in floor.connections
            for batch in BATCHES
        ]
    finally:
        await floor.close()
    return max(trials, key=lambda each: each.per_second)


async def measure(floor: Floor, runs: int, way: FloorPass) -> FloorPass:
    """One whole drain in that way."""
    await floor.open()
    try:
        return await floor.drain(runs, connections=way.connections, batch=way.batch)
    finally:
        await floor.close()
