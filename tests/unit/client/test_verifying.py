"""`verify` on the memory store: silent where all is well, and each falsified row is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from mainspring.core.model import HOUR, JobState
from mainspring.core.states import State
from tests.support.http import Served

Finding = dict[str, Any]


async def lived() -> Served:
    """A server with a past: intervals and crons, edits, a pause, an outage, misfires, overlap, a dead letter."""
    server = Served()
    await server.register()
    jobs = [
        await server.submit(every="1m", key="a"),
        await server.submit(cron="*/5 * * * *", overlap="queue_all", misfire={"policy": "all"}),
        await server.submit(cron="30 2 * * *", timezone="Europe/Berlin", dst={"gap": "skip"}),
        await server.submit(every="10m", jitter="3m"),
        await server.submit(every="7m", max_runs=3),
    ]
    await server.submit(key="b")
    for step in (60, 61, 400, 3 * 3600, 59, 1, 86_400):
        server.advance(step)
        for job in jobs:
            await server.fire(job["id"])
        if step == 400:
            await server.send("PATCH", f"/v1/jobs/{jobs[0]['id']}", json={"every": "90s"})
            await server.post(f"/v1/jobs/{jobs[1]['id']}/pause")
        if step == 59:
            await server.post(f"/v1/jobs/{jobs[1]['id']}/resume")
    await server.run_one(State.FAILED)
    await server.run_one()
    await server.post(f"/v1/jobs/{jobs[3]['id']}/cancel")
    return server


async def findings(server: Served) -> list[Finding]:
    found = await server.direct.verify(settle=0)
    told = found["findings"]
    assert isinstance(told, list)
    assert found["ok"] is (not told)
    return told


async def test_nothing_is_found_where_all_is_well() -> None:
    server = await lived()
    found = await server.direct.verify(settle=0)
    assert found["findings"] == []
    checked = found["checked"]
    assert isinstance(checked, dict)
    assert (checked["jobs"], checked["dead_letters"], checked["keys"]) == (5, 1, 1)
    assert checked["occurrences"] > 1000


async def test_a_lost_record_is_found() -> None:
    server = await lived()
    tables = server.store.memory.tables
    lost = next(run for run in tables.history.values() if run.state is State.SKIPPED and run.reason == "misfire")
    del tables.history[lost.id]
    tables.runs_of_job[lost.job_id].remove(lost.id)
    assert [(each["rule"], each["id"]) for each in await findings(server)] == [("conservation", str(lost.job_id))]


async def test_an_occurrence_too_many_is_found() -> None:
    server = await lived()
    tables = server.store.memory.tables
    run = next(run for run in tables.history.values() if run.state is State.SKIPPED and run.reason == "misfire")
    tables.history[run.id] = replace(run, count=run.count + 1)
    assert [each["rule"] for each in await findings(server)] == ["conservation"]


async def test_a_plan_that_the_schedule_does_not_know_is_found() -> None:
    """As after time zone data that moved the future."""
    server = await lived()
    tables = server.store.memory.tables
    job = next(job for job in tables.jobs.values() if job.state is JobState.ACTIVE)
    assert job.next_at is not None
    tables.put_job(replace(job, next_at=job.next_at + HOUR, scheduled_at=job.next_at + HOUR))
    assert [(each["rule"], each["id"]) for each in await findings(server)] == [("moved", str(job.id))]


async def test_a_running_run_without_a_worker_is_found() -> None:
    server = await lived()
    claimed = await server.claim()
    del server.store.memory.tables.workers[UUID(int=7)]
    assert [(each["rule"], each["id"]) for each in await findings(server)] == [("orphan", str(claimed.id))]


async def test_a_dead_letter_that_did_not_fail_is_found() -> None:
    server = await lived()
    letters = server.store.memory.tables.dead_letters
    [(run_id, run)] = letters.items()
    letters[run_id] = replace(run, state=State.COMPLETED)
    assert [(each["rule"], each["id"]) for each in await findings(server)] == [("dead_letter", str(run_id))]


async def test_a_key_without_its_holder_is_found() -> None:
    server = await lived()
    del server.store.memory.tables.uniques["default", "a"]
    [found] = await findings(server)
    assert (found["rule"], "nobody" in found["detail"]) == ("key", True)


async def test_history_that_was_dropped_accuses_nobody() -> None:
    server = Served()
    await server.register()
    job = await server.submit(every="1h", misfire={"policy": "skip"})
    for _ in range(40):
        server.advance(24 * 3600)
        await server.fire(job["id"])
        await server.store.upkeep()
    assert await findings(server) == []


async def test_a_job_whose_calendar_is_gone_is_found() -> None:
    server = Served()
    await server.register()
    await server.send("PUT", "/v1/calendars/be", 201, json={"dates": ["2026-12-25"]})
    job = await server.submit(cron="0 9 * * *", calendar="be")
    server.store.memory.tables.calendars.clear()
    assert [(each["rule"], each["id"]) for each in await findings(server)] == [("schedule", job["id"])]
