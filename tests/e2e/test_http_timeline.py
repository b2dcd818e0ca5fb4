"""A job's past over HTTP: earlier definitions, and runs of instants that have gone by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.http import Served, pointers, served

FROM, TO = "2026-12-01T06:00:00Z", "2026-12-01T10:00:00Z"


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    """It is Tuesday, 2026-12-01, 10:00:01 UTC."""
    async with served() as started:
        await started.register()
        yield started


async def backfill(server: Served, job: str, expect: int = 200, **body: Any) -> Any:
    return await server.post(f"/v1/jobs/{job}/backfill", {"from": FROM, "to": TO, **body}, expect)


def times(answer: Any) -> list[str]:
    return [each["at"][11:16] for each in answer["items"]]


async def test_a_range_is_filled_with_runs_that_follow_one_another(server: Served) -> None:
    job = await server.submit(cron="0 * * * *", payload={"n": 1})
    dry = await backfill(server, job["id"], dry_run=True)
    assert (times(dry), dry["count"], dry["more"]) == (["06:00", "07:00", "08:00", "09:00"], 4, False)
    assert (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"] == []
    done = await backfill(server, job["id"])
    assert times(done) == times(dry)
    runs = [await server.get(f"/v1/runs/{run}") for run in done["runs"]]
    assert [(run["origin"], run["status"], run["scheduled_at"][11:16]) for run in runs] == [
        ("backfill", "queued", "06:00"),
        ("backfill", "held", "07:00"),
        ("backfill", "held", "08:00"),
        ("backfill", "held", "09:00"),
    ]
    assert await server.run_one() == done["runs"][0]
    assert await server.run_one() == done["runs"][1]


async def test_instants_that_have_a_run_are_left_out_unless_asked(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    await backfill(server, job["id"], limit=2)
    again = await backfill(server, job["id"])
    assert times(again) == ["08:00", "09:00"]
    assert times(await backfill(server, job["id"])) == []
    rerun = await backfill(server, job["id"], rerun=True, overlap="allow")
    assert times(rerun) == ["06:00", "07:00", "08:00", "09:00"]
    assert len({*rerun["runs"], *again["runs"]}) == 6


async def test_a_scheduled_run_counts_and_a_skipped_occurrence_does_not(server: Served) -> None:
    job = await server.submit(cron="*/10 * * * *", misfire={"policy": "skip"})
    server.advance(10 * 60)
    assert len(await server.fire(job["id"])) == 1
    server.advance(35 * 60)
    await server.fire(job["id"])
    span: dict[str, Any] = {"from": "2026-12-01T10:05:00Z", "to": "2026-12-02T00:00:00Z"}
    found = await backfill(server, job["id"], **span)
    assert times(found) == ["10:20", "10:30", "10:40"]


async def test_limit_order_and_what_is_left(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    oldest = await backfill(server, job["id"], limit=2, dry_run=True)
    assert (times(oldest), oldest["more"]) == (["06:00", "07:00"], True)
    newest = await backfill(server, job["id"], limit=2, order="newest", dry_run=True)
    assert (times(newest), newest["more"]) == (["09:00", "08:00"], True)


async def test_each_instant_goes_by_the_definition_of_its_time(server: Served) -> None:
    await server.register()
    job = await server.submit(cron="0 * * * *", payload={"v": 1}, priority=10)
    server.advance(2 * 3600)
    change = {"cron": "30 * * * *", "payload": {"v": 2}, "queue": "other", "priority": 90}
    await server.send("PATCH", f"/v1/jobs/{job['id']}", json=change)
    server.advance(2 * 3600)
    await server.fire(job["id"])
    span: dict[str, Any] = {"from": "2026-12-01T08:15:00Z", "to": "2026-12-01T14:00:00Z"}
    found = await backfill(server, job["id"], overlap="allow", rerun=True, **span)
    assert times(found) == ["09:00", "10:00", "11:00", "12:00", "12:30", "13:30"]
    runs = [await server.get(f"/v1/runs/{run}") for run in found["runs"]]
    assert [(run["payload"]["v"], run["queue"], run["priority"]) for run in runs] == [
        *[(1, "default", 10)] * 4, *[(2, "other", 90)] * 2,
    ]  # fmt: skip


async def test_an_interval_keeps_its_beat_before_it_began(server: Served) -> None:
    job = await server.submit(every="1h")
    found = await backfill(server, job["id"], dry_run=True)
    assert [time[3:] for time in times(found)] == ["00", "00", "00", "00"]


async def test_a_backfill_that_names_a_rule_keeps_to_it(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    found = await backfill(server, job["id"], overlap="skip")
    assert (len(found["items"]), len(found["runs"])) == (4, 1)


async def test_what_cannot_be_filled_is_refused(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    problem = await server.refused("POST", f"/v1/jobs/{job['id']}/backfill", 422, json={"from": TO, "to": FROM})
    assert "/to" in pointers(problem)
    problem = await server.refused("POST", f"/v1/jobs/{job['id']}/backfill", 422, json={"limit": 0, "order": "up"})
    assert {"/limit", "/order"} <= set(pointers(problem))
    body = {"from": FROM, "to": TO}
    once = await server.submit(delay="1h")
    await server.refused("POST", f"/v1/jobs/{once['id']}/backfill", 409, json=body)
    await server.post(f"/v1/jobs/{job['id']}/cancel")
    await server.refused("POST", f"/v1/jobs/{job['id']}/backfill", 409, json=body)


async def test_definitions_are_listed_newest_first(server: Served) -> None:
    job = await server.submit(cron="0 * * * *", payload={"v": 1})
    server.advance(60)
    await server.send("PATCH", f"/v1/jobs/{job['id']}", json={"cron": "5 * * * *", "priority": 7})
    server.advance(60)
    await server.post(f"/v1/jobs/{job['id']}/pause")
    found = (await server.get(f"/v1/jobs/{job['id']}/versions"))["items"]
    assert [(each["version"], each["cron"], each["priority"]) for each in found] == [
        (2, "5 * * * *", 7),
        (1, "0 * * * *", 50),
    ]
    assert (found[0]["until"], found[1]["until"]) == (None, found[0]["since"])
    assert found[1]["since"] == job["created_at"]
    once = await server.submit()
    assert [each["version"] for each in (await server.get(f"/v1/jobs/{once['id']}/versions"))["items"]] == [1]


async def test_the_next_occurrence_is_left_out(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    after = await server.post(f"/v1/jobs/{job['id']}/skip-next")
    assert (job["next_run_at"][11:16], after["next_run_at"][11:16]) == ("11:00", "12:00")
    [record] = (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert (record["status"], record["reason"], record["scheduled_at"][11:16]) == ("skipped", "requested", "11:00")
    server.advance(3600)
    assert await server.fire(job["id"]) == []
    server.advance(3600)
    assert len(await server.fire(job["id"])) == 1
    assert (await server.direct.verify(settle=0))["findings"] == []


async def test_what_is_due_runs_before_the_next_one_is_left_out(server: Served) -> None:
    job = await server.submit(every="1m", calendar=None)
    server.advance(61)
    after = await server.post(f"/v1/jobs/{job['id']}/skip-next")
    found = (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert [run["status"] for run in found] == ["skipped", "queued"]
    assert after["next_run_at"] > found[0]["scheduled_at"]
    assert (await server.direct.verify(settle=0))["findings"] == []


async def test_days_off_before_it_keep_their_own_reason(server: Served) -> None:
    await server.send("PUT", "/v1/calendars/be", 201, json={"dates": ["2026-12-02", "2026-12-03"]})
    job = await server.submit(cron="0 9 * * *", calendar="be")
    after = await server.post(f"/v1/jobs/{job['id']}/skip-next")
    found = (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert [run["reason"] for run in found] == ["requested", "calendar", "calendar"]
    assert after["next_run_at"].startswith("2026-12-05")


async def test_nothing_can_be_left_out_of_what_does_not_fire(server: Served) -> None:
    once = await server.submit(delay="1h")
    await server.refused("POST", f"/v1/jobs/{once['id']}/skip-next", 409)
    job = await server.submit(every="1h")
    await server.post(f"/v1/jobs/{job['id']}/pause")
    await server.refused("POST", f"/v1/jobs/{job['id']}/skip-next", 409)
    last = await server.submit(every="1h", end_at="2026-12-01T11:30:00Z")
    assert (await server.post(f"/v1/jobs/{last['id']}/skip-next"))["status"] == "finished"
