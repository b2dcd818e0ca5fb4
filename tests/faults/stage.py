"""What every fault test begins with: a store of its own, a cluster on it, and a client beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from mainspring import config
from mainspring.app.stores import open_store
from mainspring.core.model import Run
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.faults.cluster import Cluster
from tests.faults.judging import outcomes_of
from tests.faults.ledger import Ledger, Line
from tests.faults.producing import Producer
from tests.support.servers import PostgresServer

WAIT_SECONDS_MAX = 40.0


class Stage:
    """`server` is None on SQLite."""

    def __init__(self, cluster: Cluster, store: Store, server: PostgresServer | None) -> None:
        self.cluster = cluster
        self.store = store
        self.server = server
        self.producer = Producer(store)

    @property
    def ledger(self) -> Ledger:
        return self.cluster.ledger

    async def submit(self, task: str, seconds: float | None = None, count: int = 1, **document: object) -> list[UUID]:
        return await self.producer.submit(task, seconds, count, **document)

    async def started(self, runs: Sequence[UUID], *, fence_above: int = 0) -> list[Line]:
        """For each run its first start with a greater fence than that, once all have one."""
        return await self.told(runs, "start", fence_above=fence_above)

    async def told(self, runs: Sequence[UUID], kind: str, *, fence_above: int = 0) -> list[Line]:
        names = [str(run) for run in runs]
        found: dict[str, Line] = {}

        def all_there() -> bool:
            for line in self.ledger.of(kind):
                if line.fence > fence_above and line.run in names:
                    found.setdefault(line.run, line)
            return len(found) == len(names)

        await self.wait_until(all_there, f"{kind} of {len(names)} runs with a fence above {fence_above}")
        return [found[name] for name in names]

    async def run(self, identity: UUID) -> Run:
        (run,) = await self.store.runs([identity])
        assert run is not None
        return run

    async def ended(self, runs: Sequence[UUID]) -> list[Run]:
        """The runs once all of them have ended."""
        return await self._runs_once(runs, lambda run: run.state.ended, "ended")

    async def in_state(self, runs: Sequence[UUID], state: State) -> list[Run]:
        return await self._runs_once(runs, lambda run: run.state is state, state.word)

    async def _runs_once(self, runs: Sequence[UUID], true: Callable[[Run], bool], what: str) -> list[Run]:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            found = [run for run in await self.store.runs(runs) if run is not None]
            if len(found) == len(runs) and all(true(run) for run in found):
                return found
            if time.monotonic() > deadline:
                states = [f"{run.id} {run.state.word} {run.reason} {outcomes_of(run)}" for run in found]
                raise TimeoutError(f"not {what}:\n" + "\n".join(states) + self.cluster.logs()[-6000:])
            await asyncio.sleep(0.05)

    async def wait_until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {WAIT_SECONDS_MAX} s: {what}\n{self.cluster.logs()[-6000:]}")
            await asyncio.sleep(0.01)

    async def start_workers(self, *hosts: str, concurrency: int = 8) -> None:
        before = self.cluster.logs().count("worker started")
        for host in hosts:
            self.cluster.start("worker", "--concurrency", str(concurrency), host=host)
        await asyncio.to_thread(self.cluster.await_workers, before + len(hosts))
        await self.until_kept()

    async def until_kept(self) -> None:
        """Until every worker process that runs is registered and has a keeper beside it, where the store tells."""

        async def all_kept() -> bool:
            pids, workers = set(self.cluster.worker_pids()), await self.store.workers()
            kept = {worker.pid for worker in workers if worker.keeper or not self.store.capabilities.session_signs}
            return pids == kept and len(pids) == len(self.cluster.live("worker")) and bool(self.cluster.keeper_pids())

        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not await all_kept():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the workers are not all kept\n{self.cluster.logs()[-6000:]}")
            await asyncio.sleep(0.02)


@asynccontextmanager
async def stage(
    kind: str, folder: Path, *, server: PostgresServer | None = None, schedulers: int = 1, **settings: str
) -> AsyncIterator[Stage]:
    """A store of this kind (`sqlite`, `postgres`) with schedulers on it; everything started is gone afterwards."""
    url = f"sqlite:///{folder / 'faults.db'}"
    if kind == "postgres":
        assert server is not None
        url = server.create_database()
    cluster = Cluster(url, folder, **settings)
    store = open_store(config.load(arguments={"store": url}, environment={}))
    try:
        await asyncio.to_thread(cluster.migrate)
        await store.open()
        for _ in range(schedulers):
            cluster.start("scheduler")
        yield Stage(cluster, store, server if kind == "postgres" else None)
    finally:
        await asyncio.to_thread(cluster.close)
        await store.close()
