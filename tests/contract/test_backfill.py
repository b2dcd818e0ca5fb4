"""Runs of past instants, as the definition of then had them."""

from __future__ import annotations

import pytest

from mainspring.core.errors import Conflict
from mainspring.core.model import HOUR, MINUTE
from mainspring.core.states import State
from mainspring.ports.store import NewRun, Store
from tests.contract.helpers import (
    T0,
    accept,
    claim_one,
    completed,
    document,
    given_recurring_job,
    given_worker,
    lane,
    new_id,
    recurring_job,
    run_of,
    state_of,
)

NOW = T0 + HOUR


async def test_a_run_has_what_it_asks_for_instead_of_what_its_job_has(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job())
    new = NewRun(
        new_id(NOW), job.id, "backfill", scheduled_at=T0 - HOUR, payload=b"[1]", document=document(every=7),
        lane=lane("old", "past"), priority=9, catch_up=True,
    )  # fmt: skip
    [run] = await store.add_runs([new], now=NOW)
    assert (run.lane, run.priority, run.payload, run.document) == (lane("old", "past"), 9, b"[1]", document(every=7))
    assert (run.origin, run.scheduled_at, run.ready_at, run.catch_up) == ("backfill", T0 - HOUR, NOW, True)
    assert (await store.jobs([job.id]))[0] is not None


async def test_runs_of_a_backfill_follow_one_another(store: Store) -> None:
    worker = await given_worker(store)
    job = await given_recurring_job(store, recurring_job())
    news = [
        NewRun(new_id(NOW), job.id, "backfill", scheduled_at=T0 - number * MINUTE, catch_up=True)
        for number in (3, 2, 1)
    ]
    runs = await store.add_runs(news, respect_overlap=True, now=NOW)
    assert [run.reason for run in runs[1:]] == ["overlap", "overlap"]
    for new in news:
        claimed = await claim_one(store, worker, now=NOW)
        assert claimed.id == new.id
        await accept(store, worker, completed(claimed), now=NOW)


async def test_the_rule_is_that_of_the_run_itself(store: Store) -> None:
    await given_worker(store)
    job = await given_recurring_job(store, recurring_job(overlap="skip"))
    allowed = [NewRun(new_id(NOW), job.id, "backfill", document=document(every=60, overlap="allow")) for _ in range(2)]
    await store.add_runs(allowed, respect_overlap=True, now=NOW)
    assert [await state_of(store, new.id) for new in allowed] == [State.QUEUED, State.QUEUED]
    with pytest.raises(Conflict):
        await store.add_runs([NewRun(new_id(NOW), job.id, "backfill")], respect_overlap=True, now=NOW)
    assert (await run_of(store, allowed[0].id)).document == document(every=60, overlap="allow")
