"""Queues: listed with their numbers, paused, purged; and the numbers of the whole (H1)."""

from __future__ import annotations

from mainspring.core.model import HOUR, MINUTE, SECOND, Evidence, QueueInfo, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    T0,
    accept,
    add_run,
    cancel,
    claim,
    claim_one,
    completed,
    delayed_job,
    fire_at,
    given_failed_run,
    given_job,
    given_recurring_job,
    given_retrying_run,
    given_running_run,
    given_worker,
    immediate_job,
    new_id,
    recurring_job,
    retrying,
    state_of,
)


async def queue_of(store: Store, name: str) -> QueueInfo:
    [info] = [info for info in await store.queues() if info.name == name]
    return info


async def test_a_queue_counts_what_is_live_in_it(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job(queue="mail") for _ in range(4)], now=T0)
    await given_job(store, immediate_job(queue="mail", task="strange"))
    first, second = await claim(store, worker, limit=2)
    await accept(store, worker, completed(first))
    info = await queue_of(store, "mail")
    assert (info.queued, info.running, info.held, info.paused) == (2, 1, 1, False)
    await accept(store, worker, retrying(second))
    assert (await queue_of(store, "mail")).running == 0


async def test_queues_are_listed_by_name_in_their_namespace(store: Store) -> None:
    for queue in ("b", "a", "c"):
        await given_job(store, immediate_job(queue=queue))
    await given_job(store, immediate_job(queue="elsewhere", namespace="other"))
    names = [info.name for info in await store.queues() if info.name != "default"]
    assert names == ["a", "b", "c"]
    assert "elsewhere" in [info.name for info in await store.queues("other")]


async def test_a_queue_can_be_paused_before_anything_is_in_it(store: Store) -> None:
    worker = await given_worker(store)
    info = await store.pause_queue("later", paused=True)
    assert (info.name, info.paused, info.queued) == ("later", True, 0)
    await given_job(store, immediate_job(queue="later"))
    assert await claim(store, worker) == []
    assert (await queue_of(store, "later")).paused
    assert (await store.pause_queue("later", paused=True)).queued == 1


async def test_a_pause_is_of_one_namespace(store: Store) -> None:
    worker = await given_worker(store, namespace="other")
    await store.pause_queue("default", paused=True)
    await given_job(store, immediate_job(namespace="other"))
    assert len(await claim(store, worker, namespace="other")) == 1


async def test_limits_are_kept_as_given(store: Store) -> None:
    info = await store.set_queue_limits("mail", '{"concurrency":3}')
    assert (info.name, info.limits) == ("mail", '{"concurrency":3}')
    await store.pause_queue("mail", paused=True)
    assert (await queue_of(store, "mail")).limits == '{"concurrency":3}'
    assert (await store.set_queue_limits("mail", None)).limits is None


async def test_a_purge_cancels_what_waits_and_leaves_what_runs(store: Store) -> None:
    worker, claimed = await given_running_run(store, None, immediate_job(queue="mail"))
    _, waiting = await given_retrying_run(store, immediate_job(queue="mail"))
    queued = await given_job(store, immediate_job(queue="mail", key="k"))
    held = await given_job(store, immediate_job(queue="mail", task="strange"))
    elsewhere = await given_job(store, immediate_job(queue="web"))

    assert await store.purge_queue("mail", now=T0 + SECOND) == 3
    assert {await state_of(store, run_id) for run_id in (waiting, queued, held)} == {State.CANCELLED}
    assert await state_of(store, claimed.id) is State.RUNNING
    assert await state_of(store, elsewhere) is State.QUEUED
    assert await store.find_key("k") is None
    assert await store.purge_queue("mail", now=T0 + SECOND) == 0
    await accept(store, worker, completed(claimed))


async def test_a_purge_empties_the_queue_of_what_waits_for_overlap_too(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(overlap="queue_all", queue="mail"))
    await fire_at(store, job.id, *(T0 + number * MINUTE for number in (1, 2, 3)))
    assert await store.purge_queue("mail", now=T0 + HOUR) == 3
    assert await store.list_runs(RunFilter(status=("queued", "held"))) == []


class TestStats:
    async def test_of_an_empty_store_are_naught(self, store: Store) -> None:
        stats = await store.stats()
        assert sum(stats.by_status.values()) == 0
        assert (stats.workers, stats.schedulers, stats.dead_letters) == (0, 0, 0)
        assert (stats.oldest_ready_at, stats.next_fire_at) == (None, None)

    async def test_count_what_is_live_by_the_word_users_see(self, store: Store) -> None:
        worker = await given_worker(store)
        await store.submit([immediate_job(), immediate_job(), immediate_job(), immediate_job(task="strange")], now=T0)
        first, second = await claim(store, worker, limit=2)
        await accept(store, worker, retrying(second))
        await accept(store, worker, completed(first))
        await given_job(store, delayed_job(T0 + HOUR))
        await given_job(store, recurring_job())
        counts = (await store.stats()).by_status
        words = ("queued", "running", "held", "retrying", "unknown", "scheduled", "active", "paused")
        assert [counts.get(word, 0) for word in words] == [1, 0, 1, 1, 0, 1, 1, 0]

    async def test_tell_the_oldest_ready_and_the_next_to_fire(self, store: Store) -> None:
        await given_worker(store)
        await given_job(store, immediate_job(), now=T0 + SECOND)
        await given_job(store, immediate_job(), now=T0)
        await given_job(store, delayed_job(T0 + HOUR))
        await given_job(store, recurring_job(first=T0 + MINUTE))
        stats = await store.stats()
        assert (stats.oldest_ready_at, stats.next_fire_at) == (T0, T0 + MINUTE)

    async def test_count_dead_letters_until_somebody_takes_them(self, store: Store) -> None:
        """C2."""
        _, old = await given_failed_run(store)
        await given_failed_run(store)
        assert (await store.stats()).dead_letters == 2
        await add_run(store, old, "replay", replaces=old, redeem=True)
        assert (await store.stats()).dead_letters == 1

    async def test_count_workers_that_are_not_lost_and_schedulers(self, store: Store) -> None:
        worker = await given_worker(store)
        await given_worker(store)
        await store.declare_lost(worker, Evidence.DEATH, now=T0)
        await store.scheduler_beat(new_id(), host="host", silent_after=HOUR, now=T0)
        stats = await store.stats()
        assert (stats.workers, stats.schedulers) == (1, 1)

    async def test_hold_the_queues(self, store: Store) -> None:
        worker = await given_worker(store)
        await given_job(store, immediate_job(queue="mail"))
        [info] = [info for info in (await store.stats()).queues if info.name == "mail"]
        assert (info.queued, info.running) == (1, 0)
        claimed = await claim_one(store, worker)
        await cancel(store, claimed.id)
        [info] = [info for info in (await store.stats()).queues if info.name == "mail"]
        assert (info.queued, info.running) == (0, 1)
