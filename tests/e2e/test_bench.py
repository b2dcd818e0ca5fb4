"""Every workload on both stores, small: what it prints, that nothing is lost, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

KEYS = {
    "workload", "runs", "per_second", "floor_per_second", "ratio", "p50_ms", "p95_ms", "p99_ms", "max_ms", "early", "lost",
    "duplicates", "cpu_seconds_per_10k", "store", "versions", "settings",
}  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    name = {"sqlite": "sqlite_url", "postgresql": "postgres18_url"}[request.param]
    return str(request.getfixturevalue(name))


def bench(workload: str, store: str, *flags: str) -> dict[str, object]:
    command = [sys.executable, "-m", "mainspring", "bench", workload, "--store", store, "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("workload", ["flood", "producer"])
def test_a_flood_is_counted_in_the_store_beside_its_floor(workload: str, store: str) -> None:
    result = bench(workload, store, "--runs", "2000")
    assert result.keys() >= KEYS
    assert (result["workload"], result["runs"]) == (workload, 2000)
    assert (result["early"], result["lost"], result["duplicates"]) == (0, 0, 0)
    assert_rates(result)
    assert_clean(store)


def test_a_pickup_is_stamped_from_submit_called_to_handler_started(store: str) -> None:
    result = bench("pickup", store, "--runs", "5", "--seconds", "0.5")
    assert result.keys() >= KEYS
    assert (result["early"], result["lost"], result["duplicates"]) == (0, 0, 0)
    assert result["ratio"] is None
    p50, longest = result["p50_ms"], result["max_ms"]
    assert isinstance(p50, float)
    assert isinstance(longest, float)
    assert 0 < p50 <= longest
    idle = result["idle_cpu_percent"]
    assert isinstance(idle, dict)
    assert idle["python"] >= 0
    assert_clean(store)


def assert_rates(result: dict[str, object]) -> None:
    rate, floor, ratio = result["per_second"], result["floor_per_second"], result["ratio"]
    assert isinstance(rate, float)
    assert isinstance(floor, float)
    assert rate > 0
    assert floor > 0
    assert ratio == pytest.approx(rate / floor, abs=0.01)


def assert_clean(store: str) -> None:
    """Neither a file nor a schema is left of it."""
    if store.startswith("sqlite"):
        folder = Path(store.removeprefix("sqlite:///")).parent
        assert [path.name for path in folder.iterdir() if "bench" in path.name] == []
    else:
        assert asyncio.run(schemas(store)) == []


async def schemas(store: str) -> list[str]:
    connection = await asyncpg.connect(store)
    try:
        rows = await connection.fetch("select nspname from pg_namespace where nspname like 'mainspring%'")
    finally:
        await connection.close()
    return [row["nspname"] for row in rows]
