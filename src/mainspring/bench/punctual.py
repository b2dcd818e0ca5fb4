"""punctual: how late runs start that are due at instants of their own, over many jobs whose time is far.

Half of what falls due is one-time, half of recurring jobs; all of it is stored before the system is started as users
start it. Lateness is read from the rows: from the instant that a run was due to its start, both in the store's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from mainspring.bench.draining import flags_of
from mainspring.bench.measured import Measured, Options, Used, latency_of
from mainspring.bench.places import Place
from mainspring.bench.roles import Role, started
from mainspring.bench.timetable import one_time, opened_store, recurring, soon, store_far, store_jobs
from mainspring.core.model import SECOND, Instant, NewJob

SECONDS = 30.0
PER_SECOND = 1000
STORED = 100_000
_INTERVAL_SECONDS = 5
_BEFORE_SECONDS = 0.5
_LOOK_SECONDS = 0.2
_OVERTIME_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Timetable:
    """So many runs evenly over so many seconds."""

    runs: int
    seconds: float
    interval: int

    @property
    def times(self) -> int:
        """How often each recurring job is due."""
        return int(self.seconds) // self.interval

    @property
    def recurring(self) -> int:
        """How many recurring jobs there are."""
        return self.runs // 2 // self.times if self.times else 0

    @property
    def one_time(self) -> int:
        return self.runs - self.recurring * self.times

    def jobs(self, now: Instant, begin: Instant) -> Iterator[NewJob]:
        span = round(self.seconds * SECOND)
        singles = (one_time(now, begin + span * number // self.one_time) for number in range(self.one_time))
        return chain(recurring(begin, self.recurring, interval=self.interval, times=self.times), singles)


async def measure(place: Place, options: Options) -> Measured:
    seconds = options.seconds or SECONDS
    runs = options.runs or round(PER_SECOND * seconds)
    interval = _INTERVAL_SECONDS if seconds >= 2 * _INTERVAL_SECONDS else 1
    timetable = Timetable(runs, seconds, interval)
    stored = STORED if options.stored is None else options.stored
    async with opened_store(place) as store:
        await store_far(store, stored)
        begin = await soon(store, timetable.one_time + timetable.recurring)
        await store_jobs(store, timetable.jobs(await store.now(), begin))
        await place.settle()
        async with started("up", place.url, "--port", "0", *flags_of(options)) as system:
            used = await watched(place, system, store.now, begin, begin + round(seconds * SECOND), runs)
    tally = await place.tally()
    skipped = await place.skipped()
    end = begin + round(seconds * SECOND)
    return Measured(
        runs=runs,
        tally=tally,
        latency=latency_of(await place.spans("scheduled_at", "started_at")),
        latency_of="due to started",
        cpu_seconds_per_10k=used.per_10k(runs),
        per_second=tally.distinct / tally.seconds,
        settings={"stored": stored, "seconds": seconds, "recurring_jobs": timetable.recurring, **options.worker},
        more={"skipped": skipped, "behind_ms": max(0.0, round((tally.last_finished_at - end) / 1000, 3))},
    )


async def watched(
    place: Place,
    system: Role,
    store_now: Callable[[], Awaitable[Instant]],
    begin: Instant,
    end: Instant,
    runs: int,
) -> Used:
    """Waits until all that is due has come to its end; looks seldom, and not at all before the last instant."""
    before = (begin - await store_now()) / SECOND
    if before < _BEFORE_SECONDS:
        raise RuntimeError("the first instant came before the system was ready; the machine is too busy for a figure")
    await asyncio.sleep(before - _BEFORE_SECONDS / 2)
    python, server = system.cpu_seconds(), place.cpu_seconds()
    await asyncio.sleep(max(0.0, (end - await store_now()) / SECOND))
    deadline = time.monotonic() + _OVERTIME_SECONDS
    while await place.live() or (await place.tally()).distinct + await place.skipped() < runs:
        if system.ended:
            raise RuntimeError("the system ended before its runs had; its log says why")
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    after = place.cpu_seconds()
    return Used(system.cpu_seconds() - python, None if server is None or after is None else after - server)
