"""The planner and calendars: it fires by the one in force, and puts right what was planned by an older one."""

from __future__ import annotations

import json
from uuid import UUID

from mainspring.client.direct import Direct
from mainspring.core.model import RunFilter
from mainspring.core.states import State
from mainspring.core.times import utc_text
from mainspring.observe.events import Bus
from tests.unit.scheduler.test_loops import House, house

__all__ = ["house"]

DAY = 86_400.0


def client(house: House) -> Direct:
    return Direct(house.store, house.clock, Bus())


def day(house: House, ahead: int) -> str:
    return utc_text(house.clock.store_now() + round(ahead * DAY) * 1_000_000)[:10]


async def submit(house: House, **calendar: object) -> UUID:
    created = await client(house).create_job(
        {"task": "work", "cron": "0 0 * * *", "calendar": {"name": "c", **calendar}}
    )
    return UUID(str(created["id"]))


async def records(house: House, job_id: UUID) -> list[tuple[State, str | None, str]]:
    runs = await house.store.list_runs(RunFilter(job_id=job_id), limit=100)
    return [(run.state, run.reason, utc_text(run.scheduled_at)[:10]) for run in reversed(runs)]


async def test_days_off_are_recorded_and_others_fire(house: House) -> None:
    await house.store.put_calendar("c", json.dumps({"dates": [day(house, 1)]}))
    planner = house.planner()
    job = await submit(house)
    first, second = day(house, 1), day(house, 2)
    for _ in range(49):
        await planner.step(house.clock.seconds)
        house.clock.seconds += 3600
    assert await records(house, job) == [
        (State.SKIPPED, "calendar", first),
        (State.QUEUED, None, second),
    ]


async def test_what_an_older_calendar_planned_is_put_right(house: House) -> None:
    """As if a scheduler that had not heard of the change wrote the row after it."""
    await house.store.put_calendar("c", json.dumps({"dates": []}))
    planner = house.planner()
    job = await submit(house, roll="next")
    tomorrow, after = day(house, 1), day(house, 2)
    await planner.step(house.clock.seconds)
    await house.store.put_calendar("c", json.dumps({"dates": [tomorrow, after]}))
    house.clock.seconds += 2
    await planner.step(house.clock.seconds)
    assert (await client(house).get_job(str(job)))["next_run_at"] == f"{day(house, 3)}T00:00:00.000Z"
    for _ in range(80):
        await planner.step(house.clock.seconds)
        house.clock.seconds += 3600
    ran = [when for state, _, when in await records(house, job) if state is not State.SKIPPED]
    assert tomorrow not in ran
    assert after not in ran
    assert len(ran) >= 1
    found = await client(house).verify(settle=0)
    assert [each["rule"] for each in _findings(found) if each["rule"] != "conservation"] == []


async def test_a_row_that_says_due_where_nothing_is_gets_its_next_instant(house: House) -> None:
    await house.store.put_calendar("c", json.dumps({"dates": []}))
    job = await submit(house, working_day=1)
    row = house.store.memory.tables.jobs[job]
    row_due = house.clock.store_now() + 1_000_000
    house.store.memory.tables.drop_job(job)
    row.next_at = row.scheduled_at = row_due
    house.store.memory.tables.put_job(row)
    planner = house.planner()
    house.clock.seconds += 2
    await planner.step(house.clock.seconds)
    corrected = house.store.memory.tables.jobs[job]
    assert corrected.scheduled_at is not None
    assert corrected.scheduled_at > house.clock.store_now()
    assert utc_text(corrected.scheduled_at)[8:10] == "01"
    assert await records(house, job) == []


def _findings(found: dict[str, object]) -> list[dict[str, object]]:
    told = found["findings"]
    assert isinstance(told, list)
    return told
