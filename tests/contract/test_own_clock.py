"""Products never say what time it is: each verb that judges what is due asks the store's own clock."""

from __future__ import annotations

from uuid import UUID

from mainspring.core.model import SECOND, TaskInfo
from mainspring.core.states import State
from mainspring.ports.store import Store
from tests.contract.helpers import (
    TASK,
    given_recurring_job,
    immediate_job,
    new_id,
    recurring_job,
    retrying,
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


async def _given_worker(store: Store) -> UUID:
    worker = new_id(await store.now())
    await store.register(worker_info(worker), [TaskInfo(TASK)])
    return worker
