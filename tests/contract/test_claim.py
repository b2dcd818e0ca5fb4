"""Claiming: order, fairness between queues, what is left alone, and that nobody gets what another has (B6, B8, E1)."""

from __future__ import annotations

import asyncio

from mainspring.core.model import HOUR, MINUTE, SECOND, Evidence, RunFilter, TaskInfo
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
    firing,
    given_back,
    given_job,
    given_recurring_job,
    given_running_run,
    given_worker,
    immediate_job,
    new_id,
    retrying,
    row_of,
    run_of,
    state_of,
    worker_info,
)


async def test_a_claimed_run_runs_with_fence_and_attempt_one(store: Store) -> None:
    worker = await given_worker(store)
    new = immediate_job(payload=b'{"a":1}', priority=60, queue="mail", timeout="5s")
    await given_job(store, new)

    [claimed] = await claim(store, worker, now=T0 + 3 * SECOND)
    assert (claimed.id, claimed.job_id, claimed.fence, claimed.attempt) == (new.id, new.id, 1, 1)
    assert (claimed.task, claimed.queue, claimed.priority) == ("task", "mail", 60)
    assert (claimed.payload, claimed.document) == (b'{"a":1}', '{"timeout":"5s"}')
    assert (claimed.spent, claimed.deaths, claimed.attempts, claimed.catch_up) == (0, 0, None, False)
    assert (claimed.scheduled_at, claimed.started_at, claimed.created_at) == (T0, T0 + 3 * SECOND, T0)
    assert claimed.lateness == 3 * SECOND

    run = await run_of(store, new.id)
    assert (run.state, run.worker, run.fence, run.attempt) == (State.RUNNING, worker, 1, 1)
    assert (run.started_at, run.lateness) == (T0 + 3 * SECOND, 3 * SECOND)


async def test_order_is_priority_then_readiness_then_id(store: Store) -> None:
    worker = await given_worker(store)
    low, first, second, high = (immediate_job(priority=priority) for priority in (10, 50, 50, 90))
    older = immediate_job(priority=50)
    await store.submit([older], now=T0 - SECOND)
    await store.submit([second, low, high, first], now=T0)
    claimed = await claim(store, worker)
    assert [one.id for one in claimed] == [high.id, older.id, first.id, second.id, low.id]


async def test_tasks_of_one_queue_are_one_line_by_priority(store: Store) -> None:
    worker = await given_worker(store, tasks=["a", "b"])
    jobs = [immediate_job(task=task, priority=priority) for task, priority in (("a", 1), ("b", 3), ("a", 2), ("b", 4))]
    await store.submit(jobs, now=T0)
    claimed = await claim(store, worker, tasks=["a", "b"], limit=3)
    assert [one.priority for one in claimed] == [4, 3, 2]


async def test_no_more_than_asked_for(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job() for _ in range(5)], now=T0)
    assert [len(await claim(store, worker, limit=2)) for _ in range(4)] == [2, 2, 1, 0]


async def test_queues_take_turns_within_a_claim(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job(queue="busy", priority=100) for _ in range(50)], now=T0)
    await store.submit([immediate_job(queue="calm", priority=0) for _ in range(50)], now=T0)
    claimed = await claim(store, worker, limit=20)
    assert sum(one.queue == "calm" for one in claimed) == 10


async def test_queues_take_turns_over_many_small_claims(store: Store) -> None:
    worker = await given_worker(store)
    for queue in ("a", "b", "c"):
        await store.submit([immediate_job(queue=queue) for _ in range(40)], now=T0)
    claimed = [one for _ in range(40) for one in await claim(store, worker, limit=1)]
    assert len(claimed) == 40
    assert {one.queue for one in claimed} == {"a", "b", "c"}


async def test_a_queue_without_work_leaves_its_turn_to_the_others(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job(queue="a"), immediate_job(queue="b")], now=T0)
    await store.submit([immediate_job(queue="b") for _ in range(9)], now=T0)
    assert len(await claim(store, worker, limit=10)) == 10


async def test_only_the_queues_named(store: Store) -> None:
    worker = await given_worker(store)
    await store.submit([immediate_job(queue="a"), immediate_job(queue="b")], now=T0)
    assert [one.queue for one in await claim(store, worker, queues=["b", "missing"])] == ["b"]


async def test_only_the_tasks_named_and_never_anothers_backlog(store: Store) -> None:
    worker = await given_worker(store, tasks=["mine"])
    await store.submit([immediate_job(task="theirs", priority=100) for _ in range(20)], now=T0)
    mine = await given_job(store, immediate_job(task="mine", priority=0))
    assert [one.id for one in await claim(store, worker, tasks=["mine"], limit=5)] == [mine]
    assert await claim(store, worker, tasks=[], limit=5) == []


async def test_only_its_namespace(store: Store) -> None:
    worker = await given_worker(store)
    foreign = await given_worker(store, namespace="other")
    here = await given_job(store, immediate_job())
    there = await given_job(store, immediate_job(namespace="other"))
    assert [one.id for one in await claim(store, worker)] == [here]
    assert [one.id for one in await claim(store, foreign, namespace="other")] == [there]


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(store: Store) -> None:
    """D4."""
    worker = await given_worker(store)
    await store.submit([immediate_job(queue="a"), immediate_job(queue="b")], now=T0)
    assert (await store.pause_queue("a", paused=True)).paused
    assert [one.queue for one in await claim(store, worker)] == ["b"]
    assert not (await store.pause_queue("a", paused=False)).paused
    assert [one.queue for one in await claim(store, worker)] == ["a"]


async def test_what_lies_ahead_is_not_claimed_before_its_time(store: Store) -> None:
    """A5: laid out a moment early, started at its instant."""
    worker = await given_worker(store)
    job_id = await given_job(store, delayed_job(T0 + MINUTE))
    [run_id] = await fire_at(store, job_id, T0 + MINUTE, now=T0 + MINUTE - 200_000)
    assert (await run_of(store, run_id)).ready_at == T0 + MINUTE
    assert await claim(store, worker, now=T0 + MINUTE - 1) == []
    assert [one.id for one in await claim(store, worker, now=T0 + MINUTE)] == [run_id]


async def test_what_lies_ahead_hides_nothing_behind_it(store: Store) -> None:
    worker = await given_worker(store)
    job = await given_recurring_job(store)
    await store.fire([firing(await row_of(store, job.id), T0 + MINUTE)], now=T0)
    ready = await given_job(store, immediate_job(priority=0))
    assert [one.id for one in await claim(store, worker, limit=1)] == [ready]


async def test_what_has_expired_unstarted_is_not_claimed(store: Store) -> None:
    worker = await given_worker(store)
    await given_job(store, immediate_job(expires_at=T0 + MINUTE, priority=90))
    fresh = await given_job(store, immediate_job(expires_at=T0 + HOUR))
    assert [one.id for one in await claim(store, worker, now=T0 + MINUTE)] == [fresh]


async def test_lateness_counts_from_acceptance_where_that_was_later(store: Store) -> None:
    worker = await given_worker(store)
    await given_job(store, immediate_job(scheduled_at=T0 - HOUR))
    assert (await claim_one(store, worker, now=T0 + SECOND)).lateness == SECOND


async def test_lateness_counts_from_the_instant_however_late_it_was_fired(store: Store) -> None:
    """A6: a run cannot look punctual because its scheduler was late."""
    worker = await given_worker(store)
    job = await given_recurring_job(store)
    await fire_at(store, job.id, T0 + MINUTE, now=T0 + 5 * MINUTE)
    assert (await claim_one(store, worker, now=T0 + 5 * MINUTE)).lateness == 4 * MINUTE


async def test_lateness_is_of_the_first_attempt(store: Store) -> None:
    worker, claimed = await given_running_run(store)
    await accept(store, worker, retrying(claimed, wait=MINUTE))
    await store.promote(now=T0 + MINUTE)
    again = await claim_one(store, worker, now=T0 + MINUTE)
    assert (again.attempt, again.lateness) == (2, 0)
    assert (await run_of(store, claimed.id)).lateness == 0


async def test_each_claim_raises_the_fence_whatever_became_of_the_attempt(store: Store) -> None:
    """B8: a fence is never handed out twice."""
    worker, claimed = await given_running_run(store)
    fences = [claimed.fence]
    for started in (False, True, False):
        await accept(store, worker, given_back(claimed, started=started))
        claimed = await claim_one(store, worker)
        fences.append(claimed.fence)
    assert fences == [1, 2, 3, 4]


async def test_a_worker_that_is_unknown_gets_nothing(store: Store) -> None:
    await given_worker(store)
    await given_job(store, immediate_job())
    assert await claim(store, new_id()) == []


async def test_a_worker_that_was_declared_lost_gets_nothing(store: Store) -> None:
    worker = await given_worker(store)
    await given_job(store, immediate_job())
    assert await store.declare_lost(worker, Evidence.DEATH, now=T0)
    assert await claim(store, worker) == []


async def test_suspects_are_left_out_where_the_claim_says_so(store: Store) -> None:
    """C3: what had two deaths behind it waits for a process that holds no other such run."""
    suspect = await given_job(store, immediate_job(priority=90))
    for _ in range(2):
        worker = await given_worker(store)
        await claim_one(store, worker)
        await store.declare_lost(worker, Evidence.DEATH, now=T0)
        await store.rescue(now=T0)
    harmless = await given_job(store, immediate_job(priority=10))
    worker = await given_worker(store)

    assert [one.id for one in await claim(store, worker, suspects=False)] == [harmless]
    [claimed] = await claim(store, worker, suspects=True)
    assert (claimed.id, claimed.deaths) == (suspect, 2)


async def test_a_claim_is_bounded_by_bytes_but_never_empty_for_them(store: Store) -> None:
    worker = await given_worker(store)
    for _ in range(3):
        await given_job(store, immediate_job(payload=b'{"x":"' + b"x" * 1000 + b'"}'))
    assert len(await claim(store, worker, bytes_max=2100)) == 2
    assert len(await claim(store, worker, bytes_max=10)) == 1


async def test_what_has_ended_or_waits_is_never_claimed(store: Store) -> None:
    """B10: ends absorb."""
    worker = await given_worker(store)
    ended, gone, waiting = [await given_job(store, immediate_job()) for _ in range(3)]
    claimed = {one.id: one for one in await claim(store, worker)}
    await accept(store, worker, completed(claimed[ended]))
    await accept(store, worker, retrying(claimed[waiting]))
    await accept(store, worker, given_back(claimed[gone], started=False))
    await cancel(store, gone)
    assert await claim(store, worker, now=T0 + SECOND) == []


class TestUnknownTasks:
    """A run whose task no worker ever registered is held, and says so."""

    async def test_shows_as_held_until_a_worker_registers_the_task(self, store: Store) -> None:
        run_id = await given_job(store, immediate_job(task="new"))
        run = await run_of(store, run_id)
        assert (run.state, run.reason) == (State.HELD, "no_worker")
        assert [one.id for one in await store.list_runs(RunFilter(status=("held",)))] == [run_id]
        assert await store.list_runs(RunFilter(status=("queued",))) == []

        worker = await given_worker(store, tasks=["new"])
        run = await run_of(store, run_id)
        assert (run.state, run.reason) == (State.QUEUED, None)
        assert [one.id for one in await claim(store, worker, tasks=["new"])] == [run_id]

    async def test_is_counted_as_held(self, store: Store) -> None:
        await given_job(store, immediate_job(task="new", queue="q"))
        [queue] = [info for info in await store.queues() if info.name == "q"]
        assert (queue.queued, queue.held) == (0, 1)
        assert (await store.stats()).by_status.get("held") == 1

    async def test_stays_known_after_its_workers_have_gone(self, store: Store) -> None:
        worker = await given_worker(store, tasks=["new"])
        await store.deregister(worker, now=T0)
        run_id = await given_job(store, immediate_job(task="new"))
        assert await state_of(store, run_id) is State.QUEUED

    async def test_is_known_by_namespace(self, store: Store) -> None:
        await given_worker(store, tasks=["new"], namespace="other")
        run_id = await given_job(store, immediate_job(task="new"))
        assert await state_of(store, run_id) is State.HELD

    async def test_tasks_are_listed_as_registered(self, store: Store) -> None:
        worker = await given_worker(store, tasks=["b", "a"])
        signed = TaskInfo("a", signature='{"parameters":[]}', defaults='{"timeout":"5s"}')
        await store.register(worker_info(worker), [signed], now=T0)
        assert await store.known_tasks() == [signed, TaskInfo("b")]
        assert await store.known_tasks(["b", "missing"]) == [TaskInfo("b")]
        assert await store.known_tasks(namespace="other") == []


async def test_many_claimers_never_get_the_same_run(store: Store, other: Store) -> None:
    """B6."""
    jobs = [immediate_job(queue=f"q{number % 3}") for number in range(300)]
    await store.submit(jobs, now=T0)
    workers = [await given_worker(store) for _ in range(8)]

    async def take(number: int) -> list[object]:
        handle = store if number % 2 else other
        taken: list[object] = []
        while claimed := await claim(handle, workers[number], limit=7):
            taken += [one.id for one in claimed]
        return taken

    taken = [run_id for share in await asyncio.gather(*map(take, range(8))) for run_id in share]
    assert len(taken) == len(set(taken))
    rest = await claim(store, workers[0], limit=300)
    assert {*taken, *(one.id for one in rest)} == {job.id for job in jobs}


async def test_a_run_beside_the_schedule_joins_the_line_of_its_job(store: Store) -> None:
    worker = await given_worker(store)
    job = await given_recurring_job(store)
    run = await add_run(store, job.id)
    assert [one.id for one in await claim(store, worker)] == [run.id]
