"""Workers in processes of their own empty the store, and what that costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from mainspring import config
from mainspring.app.stores import open_store
from mainspring.bench.measured import Options, Used
from mainspring.bench.places import Place
from mainspring.bench.roles import Role, started
from mainspring.core.model import DEFAULT_QUEUE

_LOOK_SECONDS = 0.05
_START_SECONDS = 1.0  # a worker is ready before its keeper and its warmed-up imports have come to rest
_STUCK_SECONDS = 120.0

Gate = Callable[[], Awaitable[None]]


@asynccontextmanager
async def opened_worker(place: Place, options: Options) -> AsyncIterator[tuple[Role, Gate]]:
    """A started worker in front of a paused queue, and the gate that opens it: its start costs the drain nothing."""
    store = open_store(config.load(flags={"store": place.url}))
    await store.open()
    try:
        await store.pause_queue(DEFAULT_QUEUE, paused=True)

        async def gate() -> None:
            await store.pause_queue(DEFAULT_QUEUE, paused=False)

        async with started("worker", place.url, *flags_of(options)) as worker:
            await asyncio.sleep(_START_SECONDS)
            yield worker, gate
    finally:
        await store.close()


async def drained(place: Place, worker: Role, gate: Gate) -> Used:
    """Opens the gate and waits until no run is left."""
    python, server = worker.cpu_seconds(), place.cpu_seconds()
    await gate()
    await until_empty(place, worker)
    after = place.cpu_seconds()
    return Used(worker.cpu_seconds() - python, None if server is None or after is None else after - server)


async def until_empty(place: Place, worker: Role) -> None:
    """Looks seldom and cheaply. A drain that takes too long is an error, not a figure."""
    deadline = time.monotonic() + _STUCK_SECONDS
    while await place.queued() or await place.live():
        if worker.ended:
            raise RuntimeError("the worker ended before its runs had; its log says why")
        if time.monotonic() > deadline:
            raise RuntimeError(f"runs are left after {_STUCK_SECONDS:.0f} s; the worker's log may say why")
        await asyncio.sleep(_LOOK_SECONDS)


def flags_of(options: Options) -> list[str]:
    flags = ["--processes", str(options.processes or 1)]
    return flags if options.concurrency is None else [*flags, "--concurrency", str(options.concurrency)]
