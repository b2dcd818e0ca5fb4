"""A minute of accidents under load, on each kind of store: nothing is lost and every repeat is explained."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from mainspring import config
from mainspring.app.stores import open_store
from mainspring.core.errors import WorldError
from mainspring.core.model import RunFilter
from mainspring.ports.store import Store
from tests.faults.cluster import Cluster
from tests.faults.judging import judge
from tests.faults.producing import Producer
from tests.support.processes import send_signal
from tests.support.servers import PostgresServer

FAULTY_SECONDS = float(os.environ.get("MAINSPRING_TEST_CHAOS_SECONDS", "60"))
REST_SECONDS = 60.0

pytestmark = pytest.mark.timeout(FAULTY_SECONDS + 2 * REST_SECONDS + 60)


class Chaos:
    """Draws an accident every few seconds and writes down what it did."""

    def __init__(self, cluster: Cluster, server: PostgresServer | None, seed: int) -> None:
        self.cluster = cluster
        self.server = server
        self.random = Random(seed)
        self.did: Counter[str] = Counter()
        self._stopped: list[int] = []

    async def run(self, seconds: float) -> None:
        accidents = self._accidents()
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            await asyncio.sleep(1.0 + self.random.random() * 2)
            accident = self.random.choice(accidents)
            self.did[accident.__name__] += 1
            await asyncio.to_thread(accident)
        for pid in self._stopped:
            send_signal(pid, signal.SIGCONT)

    def _accidents(self) -> list[Callable[[], None]]:
        accidents: list[Callable[[], None]] = [
            self.kill_worker,
            self.kill_worker,
            self.kill_keeper,
            self.kill_scheduler,
            self.stop_worker,
            self.restart_a_role,
        ]
        if self.server is not None:
            accidents += [self.restart_server, self.crash_server]
        return accidents

    def kill_worker(self) -> None:
        self._kill(self.cluster.worker_pids())

    def kill_keeper(self) -> None:
        self._kill(self.cluster.keeper_pids())

    def kill_scheduler(self) -> None:
        for role in self.cluster.live("scheduler")[:1]:
            role.process.kill()
            role.process.wait()
        self.cluster.start("scheduler")

    def stop_worker(self) -> None:
        """Stopped for a while, longer than the stall limit at times, then let go on."""
        pids = self.cluster.worker_pids()
        if pids:
            pid = self.random.choice(pids)
            self._stopped.append(pid)
            send_signal(pid, signal.SIGSTOP)
            time.sleep(self.random.choice([0.5, 4.0]))
            send_signal(pid, signal.SIGCONT)

    def restart_a_role(self) -> None:
        """SIGTERM drains a worker role; another takes its place."""
        role = self.cluster.live("worker")[0]
        self.cluster.start("worker", "--concurrency", "8")
        role.process.terminate()

    def restart_server(self) -> None:
        if self.server is not None:
            self.server.restart(self.random.choice(["fast", "immediate"]))

    def crash_server(self) -> None:
        if self.server is not None:
            self.server.kill()
            time.sleep(self.random.random())
            self.server.start()

    def _kill(self, pids: list[int]) -> None:
        if pids:
            send_signal(self.random.choice(pids), signal.SIGKILL)


async def test_chaos_on_sqlite(tmp_path: Path) -> None:
    await chaos(f"sqlite:///{tmp_path / 'chaos.db'}", None, tmp_path)


async def test_chaos_on_postgres(tmp_path: Path) -> None:
    server = PostgresServer(15)
    server.start()
    try:
        await chaos(server.create_database(), server, tmp_path)
    finally:
        server.stop()


async def chaos(url: str, server: PostgresServer | None, folder: Path) -> None:
    cluster = Cluster(url, folder, lease="6s", drain="3s")
    try:
        cluster.migrate()
        store = open_store(config.load(arguments={"store": url}))
        await store.open()
        for role in ("scheduler", "scheduler", "worker", "worker"):
            cluster.start(role, *(("--concurrency", "8") if role == "worker" else ()))
        await asyncio.to_thread(cluster.await_workers, 2)
        await _under_load(cluster, store, server)
        await store.close()
    finally:
        cluster.close()


async def _under_load(cluster: Cluster, store: Store, server: PostgresServer | None) -> None:
    producer = Producer(store)
    schedules = [await producer.schedule(every) for every in (0.5, 1.0, 2.0)]
    load = asyncio.create_task(producer.flood(per_second=40))
    monkey = Chaos(cluster, server, seed=int(os.environ.get("MAINSPRING_TEST_CHAOS_SEED", "1")))
    await monkey.run(FAULTY_SECONDS)
    producer.stop()
    await load
    await _insist_cancel(store, schedules)
    runs = await producer.await_all_ended(REST_SECONDS)
    problems = judge(runs, producer.accepted, cluster.ledger.lines)
    problems += await _judge_schedules(store, producer)
    assert problems == [], f"{monkey.did}\n" + "\n".join(problems[:20]) + cluster.logs()[-6000:]
    repeated = sum(run is not None and run.attempt > 1 for run in runs)
    assert repeated > 0
    print(f"accepted {len(runs)}, repeated {repeated}, accidents {dict(monkey.did)}")


async def _insist_cancel(store: Store, schedules: list[UUID]) -> None:
    while True:
        try:
            await store.cancel(schedules)
        except WorldError:
            await asyncio.sleep(0.2)
        else:
            return


async def _judge_schedules(store: Store, producer: Producer) -> list[str]:
    """Each instant of a schedule has one record."""
    problems = []
    for identity in producer.schedules:
        runs = await store.list_runs(RunFilter(job_id=identity), limit=1000)
        instants = [run.scheduled_at for run in runs if run.origin == "schedule"]
        if len(set(instants)) != len(instants):
            problems.append(f"schedule {identity} has two records of one instant")
        if not instants:
            problems.append(f"schedule {identity} never fired")
    return problems
