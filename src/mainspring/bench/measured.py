"""What is asked of a workload, and what comes of it: the keys of the one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for; None leaves it to the workload."""

    runs: int | None = None
    seconds: float | None = None
    concurrency: int | None = None
    processes: int | None = None
    stored: int | None = None

    def with_processes(self, kind: str) -> Options:
        """A drain goes as wide as its floor: two connections to a server, one file."""
        return self if self.processes else replace(self, processes=2 if kind == "postgresql" else 1)

    @property
    def worker(self) -> dict[str, object]:
        """How the workers were set."""
        return {"concurrency": self.concurrency, "processes": self.processes}


@dataclass(frozen=True, slots=True)
class Tally:
    """What the store says about the runs that were submitted to it."""

    ended: int
    distinct: int
    repeats: int
    early: int
    first_started_at: int
    last_finished_at: int

    @property
    def seconds(self) -> float:
        return max(1, self.last_finished_at - self.first_started_at) / 1e6

    @property
    def duplicates(self) -> int:
        """Ends beyond the first of a run, and attempts beyond the first, of handlers that never fail."""
        return self.ended - self.distinct + self.repeats


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds of the product's Python and of the store's own processes."""

    python: float
    store: float | None

    def per_10k(self, runs: int) -> dict[str, float | None]:
        return {
            "python": round(self.python / runs * 10_000, 4),
            "store": None if self.store is None else round(self.store / runs * 10_000, 4),
        }


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def latency_of(microseconds: Sequence[float]) -> Latency:
    """Each percentile is a value that was measured: the least that so many per cent do not exceed."""
    ordered = sorted(microseconds)

    def at(per_cent: int) -> float:
        place = max(0, -(-len(ordered) * per_cent // 100) - 1)
        return round(ordered[place] / 1000, 3)

    return Latency(at(50), at(95), at(99), at(100))


@dataclass(frozen=True, slots=True)
class Measured:
    """One pass of a workload. `settings` are those of the workload itself; `more` are figures that only it has."""

    runs: int
    tally: Tally
    latency: Latency
    latency_of: str
    cpu_seconds_per_10k: dict[str, float | None]
    per_second: float | None = None
    floor_per_second: float | None = None
    settings: dict[str, object] = field(default_factory=dict)
    more: dict[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.per_second / self.floor_per_second if self.per_second and self.floor_per_second else None

    @property
    def standing(self) -> float:
        """What passes are ordered by: higher is better."""
        return self.ratio or -self.latency.p50_ms

    def fields(self) -> dict[str, object]:
        return {
            "runs": self.runs,
            "per_second": _rounded(self.per_second, 1),
            "floor_per_second": _rounded(self.floor_per_second, 1),
            "ratio": _rounded(self.ratio, 3),
            "p50_ms": self.latency.p50_ms,
            "p95_ms": self.latency.p95_ms,
            "p99_ms": self.latency.p99_ms,
            "max_ms": self.latency.max_ms,
            "latency_of": self.latency_of,
            "early": self.tally.early,
            "lost": self.runs - self.tally.distinct,
            "duplicates": self.tally.duplicates,
            "cpu_seconds_per_10k": self.cpu_seconds_per_10k,
            **self.more,
        }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
