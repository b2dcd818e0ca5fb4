"""Accidents by chance under load, on each kind of store: nothing is lost and every repeat is explained."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from mainspring import config
from mainspring.app.stores import open_store
from mainspring.ports.store import Store
from tests.faults.accidents import WORKER, Accidents
from tests.faults.cluster import Cluster
from tests.faults.judging import judge
from tests.faults.producing import Producer
from tests.support.servers import PostgresServer

FAULTY_SECONDS = float(os.environ.get("MAINSPRING_TEST_CHAOS_SECONDS", "20"))
REST_SECONDS = 40.0
SEED = int(os.environ.get("MAINSPRING_TEST_CHAOS_SEED", "1"))

pytestmark = pytest.mark.timeout(FAULTY_SECONDS + 2 * REST_SECONDS + 60)


async def test_chaos_on_sqlite(tmp_path: Path) -> None:
    await chaos(f"sqlite:///{tmp_path / 'chaos.db'}", None, tmp_path)


async def test_chaos_on_postgres(tmp_path: Path) -> None:
    server = PostgresServer(15, own=True)
    server.start()
    try:
        await chaos(server.create_database(), server, tmp_path)
    finally:
        server.stop()


async def chaos(url: str, server: PostgresServer | None, folder: Path) -> None:
    cluster = Cluster(url, folder, lease="6s", drain="3s")
    store = open_store(config.load(arguments={"store": url}, environment={}))
    try:
        cluster.migrate()
        await store.open()
        for host in ("a", "b"):
            cluster.start("scheduler")
            cluster.start("worker", *WORKER, host=host)
        await asyncio.to_thread(cluster.await_workers, 2)
        await _under_load(cluster, store, server)
    finally:
        await asyncio.to_thread(cluster.close)
        await store.close()


async def _under_load(cluster: Cluster, store: Store, server: PostgresServer | None) -> None:
    producer = Producer(store, SEED)
    for every in (0.5, 1.0, 2.0):
        await producer.schedule(every)
    load = asyncio.create_task(producer.flood(per_second=40))
    accidents = Accidents(cluster, server, SEED)
    await accidents.happen(FAULTY_SECONDS)
    producer.stop()
    await load
    problems = await producer.end_schedules()
    runs = await producer.await_all_ended(REST_SECONDS)
    problems += judge(runs, producer.accepted, cluster.ledger.lines, accidents.hurt)
    problems += cluster.bugs()
    lost = sum('"lost"' in (run.attempts or "") for run in runs if run is not None)
    repeated = sum(run is not None and run.attempt > 1 for run in runs)
    print(f"\naccepted {len(runs)}, repeated {repeated}, lost attempts {lost}, accidents {dict(accidents.did)}")
    assert problems == [], (
        f"{len(problems)} problems; accidents {dict(accidents.did)}; hurt {dict(accidents.hurt)}\n"
        + "\n".join(problems[:20])
        + cluster.logs()[-6000:]
    )
    assert lost > 0, "inconclusive: no attempt was lost"
