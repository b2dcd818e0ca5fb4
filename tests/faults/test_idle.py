"""What a system that has nothing to do may cost."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.faults.idle import measure
from tests.faults.stage import stage
from tests.support.servers import PostgresServer

MEASURED_SECONDS = float(os.environ.get("MAINSPRING_TEST_IDLE_SECONDS", "8"))
RSS_MB_MAX = {"worker": 80.0, "keeper": 30.0}
CORE_MAX = 0.02
SHARED_MACHINE = 2.0

pytestmark = pytest.mark.timeout(60 + MEASURED_SECONDS)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_idling_costs_little(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    async with stage(kind, tmp_path, server=own_server, schedulers=0) as on:
        on.cluster.start("up", "--port", "0")
        await asyncio.to_thread(on.cluster.await_workers, 1)
        await on.wait_until(lambda: bool(on.cluster.keeper_pids()), "a keeper")
        await asyncio.sleep(2.0)
        began, served = time.monotonic(), own_server.processor_seconds()
        costs = await measure(on.cluster, MEASURED_SECONDS)
        server = (own_server.processor_seconds() - served) / (time.monotonic() - began)
        total = sum(cost.core for cost in costs) + (server if kind == "postgres" else 0.0)
        print(f"\nidle on {kind}: {total:.2%} of a core; " + ", ".join(map(str, costs)), f"server {server:.2%}")
        assert {cost.name for cost in costs} == {"worker", "keeper", "api+scheduler+supervisor"}
        assert [cost for cost in costs if cost.rss_mb > RSS_MB_MAX.get(cost.name, 80.0)] == []
        assert total <= CORE_MAX * SHARED_MACHINE
