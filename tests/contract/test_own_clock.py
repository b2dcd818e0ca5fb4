"""Products never say what time it is: each verb that judges what is due asks the store's own clock."""

from __future__ import annotations

from uuid import UUID

from mainspring.core.model import HOUR, MILLISECOND, MINUTE, SECOND, Claimed, Evidence, TaskInfo, Verdict
from mainspring.core.states import State
from mainspring.ports.store import JobEdit, NewRun, Store
from tests.contract.helpers import (
    TASK,
    cancelled,
    completed,
    delayed_job,
    firing,
    given_recurring_job,
    immediate_job,
    new_id,
    recurring_job,
    retrying,
    run_of,
    state_of,
    worker_info,
)


async def test_a_retry_is_promoted_by_the_stores_clock(store: Store) -> None:
    worker = await _given_worker(store)
    now = await store.now()
    due, later = immediate_job(at=now), immediate_job(at=now)
    await store.submit([due, later])
    claimed = {one.id: one for one in await store.claim(worker, tasks=(TASK,), queues=None, count=10)}
    await store.finish(worker, [retrying(claimed[due.id], wait=0), retrying(claimed[later.id], wait=3600 * SECOND)])
    assert await store.promote() == 1
    assert (await state_of(store, due.id), await state_of(store, later.id)) == (State.QUEUED, State.RETRYING)


async def test_what_has_waited_too_long_expires_by_the_stores_clock(store: Store) -> None:
    await _given_worker(store)
    now = await store.now()
    over, in_time = immediate_job(at=now, expires_at=now - 1), immediate_job(at=now, expires_at=now + 3600 * SECOND)
    await store.submit([over, in_time])
    assert await store.expire() == 1
    assert (await state_of(store, over.id), await state_of(store, in_time.id)) == (State.SKIPPED, State.QUEUED)


async def test_nothing_is_claimed_before_its_time_by_the_stores_clock(store: Store) -> None:
    worker = await _given_worker(store)
    ahead = immediate_job(at=await store.now())
    await store.submit([ahead], now=await store.now() + 3600 * SECOND)
    assert await store.claim(worker, tasks=(TASK,), queues=None, count=10) == []


async def test_a_schedulers_silence_is_timed_by_the_stores_clock(store: Store) -> None:
    now = await store.now()
    old, young = new_id(now), new_id(now)
    await store.scheduler_beat(old, host="old", silent_after=SECOND, now=now - 60 * SECOND)
    assert await store.scheduler_beat(young, host="young", silent_after=SECOND) == [young]


async def test_an_accepted_schedule_begins_at_the_stores_now(store: Store) -> None:
    before = await store.now()
    new = recurring_job(at=before)
    await store.submit([new])
    [view] = await store.jobs([new.id])
    assert view is not None
    assert before <= view.job.fired_through <= await store.now()
    assert (await given_recurring_job(store, now=before)).fired_through == before


async def test_a_run_goes_its_whole_way_by_the_stores_clock(store: Store) -> None:
    before = await store.now()
    worker, claimed = await _given_running(store)
    assert await store.finish(worker, [completed(claimed)]) == [Verdict.ACCEPTED]
    after = await store.now()
    run = await run_of(store, claimed.id)
    assert (run.state, run.started_at) == (State.COMPLETED, claimed.started_at)
    assert run.started_at is not None
    assert run.finished_at is not None
    assert before <= run.created_at <= run.ready_at <= run.started_at <= run.finished_at <= after


async def test_a_retry_waits_for_its_time_and_no_longer(store: Store) -> None:
    worker, claimed = await _given_running(store)
    assert await store.finish(worker, [retrying(claimed, wait=MILLISECOND)]) == [Verdict.ACCEPTED]
    due = (await run_of(store, claimed.id)).ready_at
    wake = await store.next_wake()
    assert wake is None or wake <= due
    while await store.promote() == 0:
        assert await store.now() <= due + SECOND
    assert await store.now() >= due
    [again] = await store.claim(worker, tasks=(TASK,), queues=None, count=10)
    assert (again.id, again.attempt, again.fence) == (claimed.id, 2, 2)


async def test_a_due_job_fires_at_the_stores_now_and_none_before_its_instant(store: Store) -> None:
    before = await store.now()
    due, ahead = delayed_job(before - MILLISECOND, at=before), recurring_job(first=before + MINUTE, at=before)
    await store.submit([due, ahead])
    rows = await store.due_jobs(None, until=before + MINUTE)
    assert [job.id for job in rows] == [due.id, ahead.id]
    firings = [firing(rows[0], before - MILLISECOND), firing(rows[1], before + MINUTE)]
    fired = await store.fire(firings)
    assert [one.applied for one in fired] == [True, True]
    assert before <= (await run_of(store, fired[0].runs[0])).ready_at <= await store.now()
    assert (await run_of(store, fired[1].runs[0])).ready_at == before + MINUTE
    assert [one.applied for one in await store.fire(firings)] == [False, False]


async def test_a_beat_and_a_verdict_tell_the_stores_time(store: Store) -> None:
    worker = await _given_worker(store)
    before = await store.now()
    [answer] = await store.beat([worker])
    assert answer.known
    assert before <= answer.now <= await store.now()
    [info] = await store.workers()
    assert not await store.declare_lost(worker, Evidence.SILENCE, beat=info.beat + 1)
    assert await store.declare_lost(worker, Evidence.SILENCE, beat=info.beat)
    [answer] = await store.beat([worker])
    assert not answer.known


async def test_lost_runs_are_rescued_at_the_stores_now(store: Store) -> None:
    worker, claimed = await _given_running(store, on_lost="fail")
    before = await store.now()
    await store.declare_lost(worker, Evidence.STALL)
    [rescued] = await store.rescue()
    assert (rescued.run_id, rescued.state) == (claimed.id, State.FAILED)
    run = await run_of(store, claimed.id)
    assert run.finished_at is not None
    assert before <= run.finished_at <= await store.now()


async def test_a_worker_that_stops_with_runs_is_lost_by_the_stores_clock(store: Store) -> None:
    worker, claimed = await _given_running(store)
    before = await store.now()
    await store.deregister(worker)
    [lost] = await store.workers(lost=True)
    assert lost.lost_at is not None
    assert before <= lost.lost_at <= await store.now()
    assert [one.run_id for one in await store.rescue()] == [claimed.id]


async def test_cancels_purges_and_added_runs_are_dated_by_the_stores_clock(store: Store) -> None:
    worker, claimed = await _given_running(store)
    now = await store.now()
    waiting, purged = immediate_job(at=now), immediate_job(at=now, queue="other")
    await store.submit([waiting, purged])
    [asked, ended] = await store.cancel([claimed.id, waiting.id])
    assert (asked.asked, ended.ended) == ((claimed.id,), (waiting.id,))
    assert await store.purge_queue("other") == 1
    assert await store.finish(worker, [cancelled(claimed)]) == [Verdict.ACCEPTED]
    [added] = await store.add_runs([NewRun(new_id(now), waiting.id, "retry", replaces=waiting.id)])
    later = await store.now()
    dates = [(await run_of(store, one)).finished_at for one in (claimed.id, waiting.id, purged.id)]
    assert [date is not None and now <= date <= later for date in dates] == [True] * 3
    assert now <= added.created_at <= later
    request = (await run_of(store, claimed.id)).cancel_requested_at
    assert request is not None
    assert now <= request <= later


async def test_a_change_begins_at_the_stores_now(store: Store) -> None:
    now = await store.now()
    job = await given_recurring_job(store, now=now)
    edit = JobEdit(
        job.id, job.version, priority=7, next_at=now + HOUR, next_scheduled_at=now + HOUR, definition_changed=True
    )
    changed = await store.change(edit)
    assert changed is not None
    assert (changed.priority, changed.version) == (7, job.version + 1)
    assert now <= changed.updated_at <= await store.now()


async def test_keys_of_requests_are_kept_by_the_stores_clock(store: Store) -> None:
    before = await store.now()
    first = await store.begin_idempotent("key", b"hash")
    second = await store.begin_idempotent("key", b"hash")
    assert (first.mine, second.mine) == (True, False)
    assert before <= first.created_at == second.created_at <= await store.now()
    await store.end_idempotent("key", 201, b"{}")
    third = await store.begin_idempotent("key", b"hash")
    assert (third.status, third.body) == (201, b"{}")
    old = await store.begin_idempotent("old", b"hash", now=before - 25 * HOUR)
    again = await store.begin_idempotent("old", b"hash")
    assert (old.mine, again.mine) == (True, True)


async def test_upkeep_goes_by_the_stores_clock(store: Store) -> None:
    worker, claimed = await _given_running(store)
    await store.finish(worker, [completed(claimed)])
    await store.begin_idempotent("old", b"hash", now=await store.now() - 25 * HOUR)
    await store.upkeep()
    assert await state_of(store, claimed.id) is State.COMPLETED
    assert (await store.begin_idempotent("old", b"other")).mine


async def _given_running(store: Store, on_lost: str = "retry") -> tuple[UUID, Claimed]:
    worker = await _given_worker(store)
    await store.submit([immediate_job(at=await store.now(), on_lost=on_lost)])
    [claimed] = await store.claim(worker, tasks=(TASK,), queues=None, count=10)
    return worker, claimed


async def _given_worker(store: Store) -> UUID:
    worker = new_id(await store.now())
    await store.register(worker_info(worker), [TaskInfo(TASK)])
    return worker
