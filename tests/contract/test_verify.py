"""`verify` over every store: silent about a job that lived, and about one whose history it can only partly see."""

from __future__ import annotations

from mainspring.client.direct import Direct
from mainspring.core.firing import plan_firing
from mainspring.core.model import HOUR, MINUTE, Job
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import JobEdit, Store
from tests.contract.helpers import (
    accept,
    add_run,
    claim,
    failed,
    given_recurring_job,
    given_worker,
    recurring_job,
    row_of,
)


async def fire(store: Store, job: Job, now: int) -> None:
    firing = plan_firing(await row_of(store, job.id), now)
    if firing is not None:
        [fired] = await store.fire([firing], now=now)
        assert fired.applied


async def test_every_occurrence_is_found_where_it_is_recorded(store: Store) -> None:
    born = await store.now() - 2 * HOUR
    worker = await given_worker(store, now=born)
    skipping = await given_recurring_job(store, recurring_job(at=born), now=born)
    queueing = await given_recurring_job(
        store, recurring_job(at=born, every=7 * MINUTE, overlap="queue_all", misfire={"policy": "all"}, key="k"),
        now=born,
    )  # fmt: skip
    for minutes in (1, 8, 9, 50, 51, 119):
        for job in (skipping, queueing):
            await fire(store, job, born + minutes * MINUTE)
    [claimed, *_] = await claim(store, worker, now=born + 119 * MINUTE)
    await accept(store, worker, failed(claimed), now=born + 119 * MINUTE)
    await add_run(store, skipping.id, now=born + 119 * MINUTE)
    row = await row_of(store, queueing.id)
    await store.change(JobEdit(row.id, row.version, document=row.document, priority=9, next_at=row.next_at,
                               next_scheduled_at=row.scheduled_at, definition_changed=True))  # fmt: skip
    found = await Direct(store, SystemClock(), Bus()).verify(settle=0)
    assert found["findings"] == []
    checked = found["checked"]
    assert isinstance(checked, dict)
    assert (checked["jobs"], checked["occurrences"], checked["dead_letters"], checked["keys"]) == (2, 119 + 17, 1, 1)
