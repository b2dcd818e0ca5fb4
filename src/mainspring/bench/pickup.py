"""pickup: how long an idle system takes from submit called to handler started, and what idleness costs.

Submits come one at a time, at irregular moments, so that every one of them meets a system at rest. Both instants are
read from the monotonic clock that the processes of a machine share; the handler's is the result of its run, so that
what is reported is what the store holds.

On PostgreSQL the submitter is this process and the worker one of its own, started by its command; on SQLite both
live in this process, around one open store.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from uuid import UUID

from mainspring import config
from mainspring.app.connection import Connection, direct_of
from mainspring.app.stores import open_store
from mainspring.app.worker_process import settings_of
from mainspring.bench.draining import flags_of
from mainspring.bench.measured import Measured, Options, Used, latency_of
from mainspring.bench.places import Place
from mainspring.bench.roles import started
from mainspring.bench.tasks import app, stamp
from mainspring.core.model import Run
from mainspring.core.states import State
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.worker.worker import Worker

RUNS = 300
GAP_SECONDS = (0.02, 0.08)
_WARM_UP = 20
_SETTLE_SECONDS = 1.0
_IDLE_SECONDS = 10.0
_STUCK_SECONDS = 30.0


async def measure(place: Place, options: Options) -> Measured:
    runs = options.runs or RUNS
    settings = config.load(flags={"store": place.url, "concurrency": options.concurrency})
    app.adopt(settings)
    separate = place.kind != "sqlite"
    async with _separate_worker(place, options) if separate else _worker_here(settings):
        await asyncio.sleep(_SETTLE_SECONDS)
        await _submit(place, _WARM_UP)
        server, own = place.cpu_seconds(), time.process_time()
        ids = await _submit(place, runs)
        python = time.process_time() - own
        after = place.cpu_seconds()
        found = await _read(settings, ids)
    tally = await place.tally()
    idle = await _idle_per_cent(place, options)
    used = Used(python, None if server is None or after is None else after - server)
    return Measured(
        runs=_WARM_UP + runs,
        tally=tally,
        latency=latency_of([_waited(run) for run in found]),
        latency_of="submit called to handler started",
        cpu_seconds_per_10k=used.per_10k(runs),
        settings={"processes_apart": separate, "gap_ms": [round(gap * 1000) for gap in GAP_SECONDS]},
        more={"idle_cpu_percent": idle},
    )


def _separate_worker(place: Place, options: Options) -> AbstractAsyncContextManager[object]:
    return started("worker", place.url, *flags_of(options))


@asynccontextmanager
async def _worker_here(settings: config.Settings) -> AsyncIterator[None]:
    """A worker in this event loop; what is submitted here goes through its store."""
    store = open_store(settings)
    await store.open()
    try:
        bus = Bus()
        app.connections.lend(Connection(direct_of(store, settings, bus), lent=True))
        worker = Worker(store, app.registry, SystemClock(), bus, settings_of(settings))
        life = asyncio.create_task(worker.run())
        yield
        worker.request_stop()
        await life
    finally:
        await app.close()
        await store.close()


async def _submit(place: Place, runs: int) -> list[str]:
    """One after the other; the next one once the system has come to rest."""
    ids = []
    for _ in range(runs):
        job = await stamp.submit(time.monotonic_ns())
        ids.append(job.id)
        await asyncio.sleep(random.uniform(*GAP_SECONDS))
    deadline = time.monotonic() + _STUCK_SECONDS
    while await place.live():
        if time.monotonic() > deadline:
            raise RuntimeError("runs were submitted and not carried out; the worker's log may say why")
        await asyncio.sleep(0.05)
    return ids


async def _read(settings: config.Settings, ids: Sequence[str]) -> list[Run]:
    store = open_store(settings)
    await store.open()
    try:
        found = await store.runs([UUID(identity) for identity in ids])
    finally:
        await store.close()
    return [run for run in found if run is not None and run.state == State.COMPLETED]


def _waited(run: Run) -> float:
    """Microseconds between the two stamps."""
    assert run.result is not None
    (sent,), _ = stamp.decode_arguments(run.payload)
    return (stamp.decode_result(run.result) - int(sent)) / 1000


async def _idle_per_cent(place: Place, options: Options) -> dict[str, float | None]:
    """Of one core: everything that `mainspring up` starts, and the store's own processes beside it."""
    seconds = options.seconds or _IDLE_SECONDS
    async with started("up", place.url, "--port", "0", *flags_of(options)) as system:
        await asyncio.sleep(2 * _SETTLE_SECONDS)
        python, server = system.cpu_seconds(), place.cpu_seconds()
        begun = time.monotonic()
        await asyncio.sleep(seconds)
        passed = time.monotonic() - begun
        after = place.cpu_seconds()
        return {
            "python": round((system.cpu_seconds() - python) / passed * 100, 2),
            "store": None if server is None or after is None else round((after - server) / passed * 100, 2),
            "processes": system.processes,
        }
