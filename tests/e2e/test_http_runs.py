"""Runs, their logs and dead letters over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mainspring.core.states import State
from tests.support.http import WORKER, Served, served

ERROR = '{"message":"no such address","traceback":"…","type":"ValueError"}'
NOWHERE = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        await started.register()
        yield started


async def failed_run(server: Served) -> str:
    await server.submit(payload={"to": "x"})
    return await server.run_one(State.FAILED, error=ERROR)


async def test_a_run_from_queued_to_completed(server: Served) -> None:
    job = await server.submit()
    path = f"/v1/runs/{job['id']}"
    queued = await server.get(path)
    assert (queued["status"], queued["attempt"], queued["started_at"], queued["attempts"]) == ("queued", 0, None, [])
    server.advance(0.5)
    claimed = await server.claim()
    running = await server.get(path)
    assert (running["status"], running["worker"], running["lateness_ms"]) == ("running", str(WORKER), 500)
    assert running["attempts"][0]["outcome"] is None
    server.advance(0.25)
    await server.finish(claimed, result=b'{"sent":true}')
    done = await server.get(path)
    assert (done["status"], done["result"], done["duration_ms"], done["fence"]) == ("completed", {"sent": True}, 250, 1)
    assert (done["attempts"][0]["number"], done["attempts"][0]["outcome"]) == (1, "completed")
    assert (done["max_attempts"], done["origin"], done["payload"]) == (3, "submit", {})


async def test_a_retrying_run_says_when_it_goes_on_and_can_go_on_now(server: Served) -> None:
    job = await server.submit()
    path = f"/v1/runs/{job['id']}"
    await server.run_one(State.RETRYING, error=ERROR, wait=60_000_000)
    waits = await server.get(path)
    assert (waits["status"], waits["retry_at"]) == ("retrying", "2026-12-01T10:01:01.100Z")
    assert waits["error"]["type"] == "ValueError"
    assert "timeout" in (await server.refused("POST", f"{path}/retry", 409, json={"timeout": "5m"}))["detail"]
    assert (await server.post(f"{path}/retry"))["status"] == "queued"


async def test_retry_of_an_ended_run_makes_a_new_one(server: Served) -> None:
    run = await failed_run(server)
    new = await server.post(f"/v1/runs/{run}/retry", {"timeout": "20m"})
    assert (new["origin"], new["replaces"], new["status"], new["payload"]) == ("retry", run, "queued", {"to": "x"})
    assert (await server.get("/v1/dead-letters"))["items"] == []
    claimed = await server.claim()
    assert json.loads(claimed.document or "{}")["timeout"] == "20m"
    await server.finish(claimed)
    assert (await server.post(f"/v1/runs/{new['id']}/retry"))["replaces"] == new["id"]
    assert (await server.get(f"/v1/jobs/{run}"))["last_run"]["id"] != run


@pytest.mark.parametrize("claimed", [False, True])
async def test_a_run_under_way_is_not_retried(server: Served, claimed: bool) -> None:
    job = await server.submit()
    if claimed:
        await server.claim()
    problem = await server.refused("POST", f"/v1/runs/{job['id']}/retry", 409)
    assert ("running" if claimed else "queued") in problem["detail"]


async def test_wrong_bodies_are_refused(server: Served) -> None:
    run = await failed_run(server)
    for path, body, pointer in (
        (f"/v1/runs/{run}/retry", {"timeout": 0}, "/timeout"),
        (f"/v1/runs/{run}/retry", {"time": 0}, "/time"),
        (f"/v1/runs/{run}/retry", [], ""),
        (f"/v1/runs/{run}/resolve", {"as": "done"}, "/as"),
        (f"/v1/runs/{run}/resolve", {}, "/as"),
        (f"/v1/dead-letters/{run}/replay", {"payload": 5}, "/payload"),
    ):
        problem = await server.refused("POST", path, 422, json=body)
        assert problem["errors"][0]["pointer"] == pointer


async def test_cancel_of_a_queued_and_of_a_running_run(server: Served) -> None:
    queued = await server.submit()
    cancelled = await server.post(f"/v1/runs/{queued['id']}/cancel")
    assert (cancelled["status"], cancelled["attempt"]) == ("cancelled", 0)
    assert (await server.post(f"/v1/runs/{queued['id']}/cancel"))["status"] == "cancelled"
    running = await server.submit()
    claimed = await server.claim()
    asked = await server.post(f"/v1/runs/{running['id']}/cancel")
    assert asked["status"] == "running"
    server.advance(1)
    again = await server.post(f"/v1/runs/{running['id']}/cancel")
    assert again["cancel_requested_at"] == asked["cancel_requested_at"] is not None
    await server.finish(claimed)
    assert (await server.get(f"/v1/runs/{running['id']}"))["status"] == "running"
    await server.finish(claimed, State.CANCELLED)
    assert (await server.get(f"/v1/runs/{running['id']}"))["status"] == "cancelled"


async def test_a_completed_run_is_not_cancelled(server: Served) -> None:
    await server.submit()
    run = await server.run_one()
    assert "completed" in (await server.refused("POST", f"/v1/runs/{run}/cancel", 409))["detail"]


@pytest.mark.parametrize(
    ("resolution", "status"), [("completed", "completed"), ("failed", "failed"), ("retry", "queued")]
)
async def test_an_unknown_run_is_resolved_by_a_person(server: Served, resolution: str, status: str) -> None:
    await server.submit(on_lost="hold")
    run = await server.run_one(State.UNKNOWN)
    await server.refused("POST", f"/v1/runs/{run}/retry", 409)
    resolved = await server.post(f"/v1/runs/{run}/resolve", {"as": resolution, "note": "seen in the ledger"})
    assert resolved["status"] == status
    assert status in (await server.refused("POST", f"/v1/runs/{run}/resolve", 409, json={"as": "retry"}))["detail"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=failed", 1),
        ("status=completed,failed", 2),
        ("task=send", 3),
        ("task=other", 0),
        ("queue=mail", 1),
        ("tag=red", 1),
        ("error=ValueError", 1),
        (f"worker={WORKER}", 2),
        ("from=2026-12-01T10:00:00Z", 3),
        ("to=2026-12-01T10:00:00Z", 0),
        ("reason=poison", 0),
        ("limit=1", 1),
    ],
)
async def test_filters(server: Served, query: str, found: int) -> None:
    await failed_run(server)
    await server.submit(queue="mail")
    await server.run_one()
    await server.submit(tags=["red"])
    assert len((await server.get(f"/v1/runs?{query}"))["items"]) == found


async def test_wrong_filters_are_refused(server: Served) -> None:
    for query in (
        "status=active",
        "job_id=x",
        "worker=1",
        "from=2026-12-01T10:00:00",
        "created_after=x",
        "payload.a=1",
    ):
        await server.refused("GET", f"/v1/runs?{query}", 422)


async def test_runs_page_through_with_a_cursor(server: Served) -> None:
    ids = [(await server.submit())["id"] for _ in range(3)]
    first = await server.get("/v1/runs?limit=2")
    rest = await server.get(f"/v1/runs?limit=2&cursor={first['next']}")
    assert [run["id"] for run in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None


async def test_logs_in_order_and_by_page(server: Served) -> None:
    job = await server.submit()
    await server.log(job["id"], "one", "two", "three")
    path = f"/v1/runs/{job['id']}/logs"
    first = await server.get(f"{path}?limit=2")
    assert [(line["message"], line["level"], line["attempt"]) for line in first["items"]] == [
        ("one", "info", 1),
        ("two", "info", 1),
    ]
    rest = await server.get(f"{path}?cursor={first['next']}")
    assert ([line["message"] for line in rest["items"]], rest["next"]) == (["three"], None)
    for query in ("cursor=x", "limit=0", "follow=maybe", "level=info"):
        await server.refused("GET", f"{path}?{query}", 422)
    await server.refused("GET", f"/v1/runs/{NOWHERE}/logs?follow=true", 404)


@pytest.mark.parametrize("ask", [{"params": {"follow": "true"}}, {"headers": {"accept": "text/event-stream"}}])
async def test_following_a_log_tells_each_line_until_the_run_has_ended(server: Served, ask: dict[str, Any]) -> None:
    job = await server.submit()
    await server.log(job["id"], "one", "two\nlines")
    await server.run_one()
    response = await server.http.get(f"/v1/runs/{job['id']}/logs", **ask)
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    assert [event["message"] for event in events] == ["one", "two\nlines"]
    last = response.text.split("id: ")[1].splitlines()[0]
    again = await server.http.get(f"/v1/runs/{job['id']}/logs?follow=true", headers={"last-event-id": last})
    assert again.text.count("data: ") == 1


async def test_dead_letters_are_listed_replayed_and_discarded(server: Served) -> None:
    first, second = await failed_run(server), await failed_run(server)
    listed = await server.get("/v1/dead-letters?status=failed&task=send")
    assert [run["id"] for run in listed["items"]] == [second, first]
    assert listed["items"][0]["error"]["message"] == "no such address"
    new = await server.post(f"/v1/dead-letters/{first}/replay", {"payload": {"to": "y"}})
    assert (new["origin"], new["replaces"], new["payload"], new["status"]) == ("replay", first, {"to": "y"}, "queued")
    await server.refused("POST", f"/v1/dead-letters/{first}/replay", 409)
    assert (await server.post(f"/v1/dead-letters/{second}/discard"))["id"] == second
    assert (await server.post(f"/v1/dead-letters/{second}/discard"))["status"] == "failed"
    assert (await server.get("/v1/dead-letters"))["items"] == []
    done = await server.run_one()
    for action in ("replay", "discard"):
        assert "completed" in (await server.refused("POST", f"/v1/dead-letters/{done}/{action}", 409))["detail"]
        await server.refused("POST", f"/v1/dead-letters/{NOWHERE}/{action}", 404)


async def test_a_skipped_occurrence_is_a_run_without_attempts(server: Served) -> None:
    job = await server.submit(every="10m")
    await server.post(f"/v1/jobs/{job['id']}/trigger")
    server.advance(600)
    await server.fire(job["id"])
    (skipped,) = (await server.get(f"/v1/runs?job_id={job['id']}&status=skipped"))["items"]
    assert (skipped["reason"], skipped["attempt"], skipped["attempts"], skipped["count"]) == ("overlap", 0, [], 1)
    assert await server.get(f"/v1/runs/{skipped['id']}")
