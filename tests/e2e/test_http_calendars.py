"""Calendars over HTTP, and the jobs whose schedules go by them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.http import Served, pointers, served

HOLIDAYS = {"dates": ["2026-12-25"], "days_off": ["sat", "sun"]}


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    """It is Tuesday, 2026-12-01, 10:00 UTC."""
    async with served() as started:
        await started.register()
        yield started


async def put(server: Served, name: str = "be", body: object = None, expect: int = 201, **headers: str) -> Any:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return await server.send("PUT", f"/v1/calendars/{name}", expect, json=body or HOLIDAYS, headers=given)


async def firing_days(server: Served, job: str, count: int = 10) -> list[str]:
    found = await server.get(f"/v1/jobs/{job}/next?count={count}")
    return [each["at"][:10] for each in found["items"] if each["fires"]]


async def test_a_calendar_is_created_read_replaced_and_deleted(server: Served) -> None:
    response = await server.http.put("/v1/calendars/be", json=HOLIDAYS)
    made = response.json()
    assert response.status_code == 201
    assert (response.headers["etag"], response.headers["location"]) == ('"1"', "/v1/calendars/be")
    assert {key: made[key] for key in ("name", "dates", "days_off", "icalendar", "version")} == {
        "name": "be", **HOLIDAYS, "icalendar": None, "version": 1,
    }  # fmt: skip
    assert await server.get("/v1/calendars/be") == made
    replaced = await put(server, body={"dates": []}, expect=200)
    assert (replaced["version"], replaced["dates"], replaced["days_off"]) == (2, [], [])
    assert await put(server, body=replaced, expect=200) == replaced
    listed = await server.get("/v1/calendars")
    assert (listed["items"], listed["next"]) == ([replaced], None)
    assert await server.send("DELETE", "/v1/calendars/be") == replaced
    await server.refused("GET", "/v1/calendars/be", 404)
    await server.refused("DELETE", "/v1/calendars/be", 404)


async def test_a_stale_version_is_refused(server: Served) -> None:
    await server.refused("PUT", "/v1/calendars/be", 412, json=HOLIDAYS, headers={"If-Match": '"1"'})
    await put(server)
    await put(server, body={"dates": []}, expect=200, If_Match='"1"')
    await server.refused("PUT", "/v1/calendars/be", 412, json=HOLIDAYS, headers={"If-Match": '"1"'})
    await server.refused("DELETE", "/v1/calendars/be", 412, headers={"If-Match": '"1"'})
    await server.send("DELETE", "/v1/calendars/be", headers={"If-Match": '"2"'})


async def test_each_thing_that_is_wrong_is_named(server: Served) -> None:
    body = {"dates": ["2026-02-30"], "days_off": ["sat", "caturday"], "icalendar": 7, "date": []}
    problem = await server.refused("PUT", "/v1/calendars/be", 422, json=body)
    assert set(pointers(problem)) == {"/dates/0", "/days_off/1", "/icalendar", "/date"}
    assert "did you mean" in pointers(problem)["/date"]
    await server.refused("PUT", "/v1/calendars/be", 422, json=[])
    await server.refused("PUT", "/v1/calendars/be", 422, json={"name": "other"})


async def test_a_schedule_goes_by_its_calendar(server: Served) -> None:
    await put(server)
    job = await server.submit(cron="0 9 * * *", calendar="be")
    assert job["calendar"] == {"name": "be", "roll": "skip"}
    assert job["next_run_at"] == "2026-12-02T09:00:00.000Z"
    found = await server.get(f"/v1/jobs/{job['id']}/next?count=5")
    assert [(each["at"][:10], each["fires"], each["marks"]) for each in found["items"]] == [
        ("2026-12-02", True, []),
        ("2026-12-03", True, []),
        ("2026-12-04", True, []),
        ("2026-12-05", False, ["calendar"]),
        ("2026-12-06", False, ["calendar"]),
    ]


async def test_an_occurrence_on_a_day_off_is_recorded_as_skipped(server: Served) -> None:
    await put(server, body={"dates": ["2026-12-02"]})
    job = await server.submit(cron="0 9 * * *", calendar={"name": "be"})
    server.advance(23 * 3600 + 60)
    assert await server.fire(job["id"]) == []
    [run] = (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert (run["status"], run["reason"], run["scheduled_at"]) == ("skipped", "calendar", "2026-12-02T09:00:00.000Z")


async def test_the_last_working_day_of_each_month(server: Served) -> None:
    await put(server)
    job = await server.submit(cron="0 9 * * *", calendar={"name": "be", "working_day": -1})
    assert await firing_days(server, job["id"], 3) == ["2026-12-31", "2027-01-29", "2027-02-26"]


async def test_a_change_of_a_calendar_moves_what_is_to_come(server: Served) -> None:
    await put(server, body={"dates": []})
    job = await server.submit(cron="0 9 2 * *", calendar={"name": "be", "roll": "next"})
    assert job["next_run_at"].startswith("2026-12-02")
    await put(server, body={"dates": ["2026-12-02", "2026-12-03"]}, expect=200)
    moved = await server.get(f"/v1/jobs/{job['id']}")
    assert (moved["next_run_at"][:10], moved["version"]) == ("2026-12-04", 2)
    await put(server, body={"dates": ["2026-12-24"]}, expect=200)
    assert (await server.get(f"/v1/jobs/{job['id']}"))["next_run_at"].startswith("2026-12-02")


async def test_the_next_run_is_one_that_fires(server: Served) -> None:
    await put(server, body={"dates": ["2026-12-02", "2026-12-03"]})
    job = await server.submit(cron="0 9 * * *", calendar="be")
    assert job["next_run_at"].startswith("2026-12-04")
    assert (await server.get("/v1/jobs"))["items"] == [job]


async def test_a_calendar_in_use_is_not_deleted(server: Served) -> None:
    await put(server)
    job = await server.submit(cron="0 9 * * *", calendar="be")
    problem = await server.refused("DELETE", "/v1/calendars/be", 409)
    assert job["id"] in problem["detail"]
    await server.send("PATCH", f"/v1/jobs/{job['id']}", json={"calendar": None})
    await server.send("DELETE", "/v1/calendars/be")


async def test_an_unknown_calendar_is_refused(server: Served) -> None:
    for call in (
        ("POST", "/v1/jobs", {"task": "send", "cron": "0 9 * * *", "calendar": "nowhere"}),
        ("POST", "/v1/preview", {"cron": "0 9 * * *", "calendar": "nowhere"}),
        ("POST", "/v1/jobs:batch", [{"task": "send", "every": "1h", "calendar": {"name": "nowhere"}}]),
    ):
        problem = await server.refused(call[0], call[1], 422, json=call[2])
        [(pointer, detail)] = pointers(problem).items()
        assert pointer.endswith("/calendar/name")
        assert "nowhere" in detail


async def test_a_calendar_that_closes_every_day_never_lets_fire(server: Served) -> None:
    text = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20200101\nRRULE:FREQ=DAILY\nEND:VEVENT\nEND:VCALENDAR\n"
    await put(server, body={"icalendar": text})
    body = {"task": "send", "cron": "0 9 * * *", "calendar": "be"}
    problem = await server.refused("POST", "/v1/jobs", 422, json=body)
    assert "never fires" in pointers(problem)["/calendar"]


async def test_calendars_go_with_schedules_only(server: Served) -> None:
    body = {"task": "send", "delay": "1h", "calendar": "be", "every_nth": 2}
    problem = await server.refused("POST", "/v1/jobs", 422, json=body)
    assert set(pointers(problem)) == {"/calendar", "/every_nth"}


async def test_recurrence_rules_lists_and_every_nth_are_taken(server: Served) -> None:
    rule = await server.submit(rrule="FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0")
    assert await firing_days(server, rule["id"], 3) == ["2026-12-25", "2027-01-29", "2027-02-26"]
    union = await server.submit(cron=["0 9 3 * *", "0 9 5 * *"])
    assert await firing_days(server, union["id"], 3) == ["2026-12-03", "2026-12-05", "2027-01-03"]
    third = await server.submit(cron="0 9 * * *", every_nth=3)
    days = await firing_days(server, third["id"], 3)
    assert [int(day[8:]) for day in days] == [int(days[0][8:]), int(days[0][8:]) + 3, int(days[0][8:]) + 6]
    seconds = await server.submit(cron="30 0 9 * * *", dialect="seconds")
    assert seconds["next_run_at"] == "2026-12-02T09:00:30.000Z"
    problem = await server.refused("POST", "/v1/jobs", 422, json={"task": "send", "rrule": "FREQ=SOMETIMES"})
    assert "/rrule" in pointers(problem)
