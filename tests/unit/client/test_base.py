"""Sending through trouble, what is remembered of tasks, and the bound on a backlog."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mainspring.client.base import ClientSettings
from mainspring.client.direct import Direct
from mainspring.core.errors import BacklogFull, StoreUnavailable
from mainspring.core.model import Instant, NewJob, QueueInfo, RunFilter, TaskInfo
from mainspring.observe.events import Bus, Event, JobsChanged, JobsSubmitted
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Submitted
from mainspring.stores.memory import MemoryStore


class Clock(SystemClock):
    """Waits next to nothing, and moves only when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def random(self) -> float:
        return 0.0


class Store(MemoryStore):
    """Counts what it is asked, and fails as told."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(lambda: 1_800_000_000_000_000 + round(clock.seconds * 1_000_000))
        self.failures: list[StoreUnavailable] = []
        self.sends: list[bool] = []
        self.asked_tasks = 0
        self.asked_now = 0
        self.asked_queues = 0

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        self.sends.append(repeat)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None and not failure.unknown_outcome:
            raise failure
        submitted = await super().submit(jobs, repeat=repeat, now=now)
        if failure is not None:
            raise failure
        return submitted

    async def known_tasks(self, names: Sequence[str] | None = None, namespace: str = "default") -> list[TaskInfo]:
        self.asked_tasks += 1
        return await super().known_tasks(names, namespace)

    async def now(self) -> Instant:
        self.asked_now += 1
        return await super().now()

    async def queues(self, namespace: str = "default") -> list[QueueInfo]:
        self.asked_queues += 1
        return await super().queues(namespace)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    return Store(clock)


@pytest.fixture
def direct(store: Store, clock: Clock) -> Direct:
    return Direct(store, clock, Bus())


async def test_a_send_of_unknown_outcome_is_repeated_as_a_repeat(store: Store, direct: Direct) -> None:
    store.failures = [StoreUnavailable("no"), StoreUnavailable("lost", unknown_outcome=True), StoreUnavailable("no")]
    job = await direct.create_job({"task": "t"})
    assert store.sends == [False, False, True, True]
    assert [str(run.id) for run in await store.list_runs(RunFilter())] == [job["id"]]


async def test_patience_ends(store: Store, clock: Clock) -> None:
    direct = Direct(store, clock, Bus(), ClientSettings(patience=0.0))
    store.failures = [StoreUnavailable("no")]
    with pytest.raises(StoreUnavailable):
        await direct.create_job({"task": "t"})
    assert store.sends == [False]


async def test_time_is_measured_again_every_ten_seconds(store: Store, direct: Direct, clock: Clock) -> None:
    await direct.now()
    first = store.asked_now
    await direct.now()
    assert store.asked_now == first == 3
    clock.seconds += 10.1
    await direct.now()
    assert store.asked_now == 4


async def test_tasks_are_remembered_for_a_second(store: Store, direct: Direct, clock: Clock) -> None:
    await direct.tasks.find([])
    for _ in range(5):
        await direct.tasks.find([])
    assert store.asked_tasks == 1
    clock.seconds += 0.06
    await direct.tasks.find(["unknown"])
    assert store.asked_tasks == 2
    clock.seconds += 1.01
    await direct.tasks.find([])
    assert store.asked_tasks == 3


async def test_a_batch_costs_one_send(store: Store, direct: Direct) -> None:
    await direct.create_jobs([{"task": "t"}] * 500)
    assert store.sends == [False]
    assert store.asked_tasks == 1


async def test_without_a_bound_the_backlog_is_not_counted(store: Store, direct: Direct) -> None:
    await direct.create_jobs([{"task": "t"}] * 10)
    assert store.asked_queues == 0


async def test_the_backlog_has_its_bound_per_queue(store: Store, clock: Clock) -> None:
    direct = Direct(store, clock, Bus(), ClientSettings(ready_limit=5))
    await direct.create_jobs([{"task": "t"}] * 5)
    with pytest.raises(BacklogFull, match="holds 5"):
        await direct.create_job({"task": "t"})
    await direct.create_job({"task": "t", "queue": "other"})
    await direct.create_job({"task": "t", "delay": 5})
    await direct.purge_queue("default")
    clock.seconds += 0.3
    await direct.create_job({"task": "t"})


async def test_what_happens_is_told_as_events(store: Store, direct: Direct) -> None:
    heard: list[Event] = []
    direct.bus.subscribe(heard.append)
    job = await direct.create_job({"task": "t", "every": 60})
    await direct.pause_job(str(job["id"]))
    submitted, changed = heard
    assert isinstance(submitted, JobsSubmitted)
    assert list(submitted.tasks) == ["t"]
    assert isinstance(changed, JobsChanged)
    assert changed.action == "pause"
