"""Jobs whose time is to come: near ones that a workload waits for, and far ones that only lie there."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import islice

from mainspring import config
from mainspring.app.stores import open_store
from mainspring.bench.places import Place
from mainspring.bench.tasks import nothing
from mainspring.core.ids import uuid7
from mainspring.core.model import DAY, HOUR, MILLISECOND, SECOND, Instant, Kind, Lane, NewJob
from mainspring.core.times import utc_text
from mainspring.ports.store import Store

LANE = Lane("default", "default", nothing.name)
PAYLOAD = b"{}"
_BATCH = 5000
_FAR_SPREAD = 30 * DAY
_PER_SECOND = 8000  # what a store takes on a busy machine, for the choice of an instant that lies far enough ahead
_START_SECONDS = 6.0


@asynccontextmanager
async def opened_store(place: Place) -> AsyncIterator[Store]:
    store = open_store(config.load(flags={"store": place.url}))
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def store_jobs(store: Store, jobs: Iterable[NewJob]) -> None:
    waiting = iter(jobs)
    while batch := list(islice(waiting, _BATCH)):
        await store.submit(batch)


async def soon(store: Store, jobs: int) -> Instant:
    """A whole second by which so many jobs are stored and a system has been started."""
    ahead = round((_START_SECONDS + jobs / _PER_SECOND) * SECOND)
    return -(-(await store.now() + ahead) // SECOND) * SECOND


async def store_far(store: Store, count: int) -> None:
    """One-time jobs from an hour to a month ahead."""
    now = await store.now()
    step = _FAR_SPREAD // max(1, count)
    await store_jobs(store, (one_time(now, now + HOUR + number * step) for number in range(count)))


def one_time(now: Instant, at: Instant, *, priority: int = 50) -> NewJob:
    return NewJob(
        id=uuid7(now, os.urandom(10)),
        lane=LANE,
        kind=Kind.DELAYED,
        priority=priority,
        payload=PAYLOAD,
        next_at=at,
        scheduled_at=at,
    )


def recurring(begin: Instant, jobs: int, *, interval: int, times: int) -> Iterator[NewJob]:
    """Each one is due `times` times, the first time within one interval (seconds) of the beginning, evenly spread."""
    span = interval * SECOND
    document = json.dumps({"end_at": utc_text(begin + times * span), "every": f"{interval}s"}, separators=(",", ":"))
    for number in range(jobs):
        first = (begin + span * number // jobs) // MILLISECOND * MILLISECOND
        identity = uuid7(first - span, os.urandom(10))  # intervals count from the instant in the id
        yield NewJob(identity, LANE, Kind.RECURRING, 50, PAYLOAD, document, None, first, first)
