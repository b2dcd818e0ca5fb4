"""The figures of recovery, on real processes. Each is printed; on a shared machine twice the promise passes.

`python -m tests.faults.figures` measures them with more accidents.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.recovery import (
    Figure,
    kills_of_a_host,
    kills_of_a_worker,
    silences_of_a_host,
    stops_of_a_worker,
)
from tests.faults.stage import stage
from tests.support.servers import PostgresServer

KINDS = ("sqlite", "postgres")
SHARED_MACHINE = 2.0
KILLS = int(os.environ.get("MAINSPRING_TEST_KILLS", "3"))

pytestmark = pytest.mark.timeout(120 + 10 * KILLS)


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_of_a_killed_worker_start_again_at_once(
    kind: str, tmp_path: Path, own_server: PostgresServer
) -> None:
    async with stage(kind, tmp_path, server=own_server) as on:
        await on.start_workers("a", "b")
        _hold(await kills_of_a_worker(on, KILLS))


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_of_a_killed_worker_and_keeper(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    async with stage(kind, tmp_path, server=own_server) as on:
        await on.start_workers("a", "b")
        _hold(await kills_of_a_host(on, max(1, KILLS // 3)))


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_of_a_stopped_worker(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    """With the shipped defaults: a lease of 30 s."""
    async with stage(kind, tmp_path, server=own_server) as on:
        await on.start_workers("a", "b")
        _hold(await stops_of_a_worker(on, 1, promised=12.0))


@pytest.mark.parametrize("kind", KINDS)
async def test_runs_of_a_silent_host(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    async with stage(kind, tmp_path, server=own_server, lease="6s") as on:
        await on.start_workers("a", "b")
        _hold(await silences_of_a_host(on, 1, promised=8.0))


def _hold(figure: Figure) -> None:
    print(f"\n{figure}")
    assert figure.quantile(0.99) <= figure.promised * SHARED_MACHINE, figure
