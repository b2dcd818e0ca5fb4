"""Why something runs or does not, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from mainspring.core.states import State
from tests.support.http import Served, served


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    """It is Tuesday, 2026-12-01, 10:00:01 UTC."""
    async with served() as started:
        await started.register()
        yield started


async def of_job(server: Served, job: str, at: str | None = None) -> Any:
    return await server.get(f"/v1/jobs/{job}/explain" + (f"?at={at}" if at else ""))


async def of_run(server: Served, run: str) -> Any:
    return await server.get(f"/v1/runs/{run}/explain")


def closed(told: Any) -> list[str]:
    return [gate["gate"] for gate in told["gates"] if not gate["open"]]


async def test_a_ready_run_has_all_gates_open(server: Served) -> None:
    job = await server.submit()
    told = await of_run(server, job["id"])
    assert set(told) == {"subject", "status", "why", "gates"}
    assert (told["status"], closed(told)) == ("queued", [])
    assert "nothing is in its way" in told["why"]
    assert {"queue", "worker", "slots", "task", "time"} <= {gate["gate"] for gate in told["gates"]}
    assert (await of_job(server, job["id"]))["gates"] == told["gates"]


async def test_a_paused_queue(server: Served) -> None:
    job = await server.submit(queue="mail")
    await server.post("/v1/queues/mail/pause")
    told = await of_run(server, job["id"])
    assert closed(told) == ["queue"]
    assert "paused" in told["why"]
    [gate] = [gate for gate in told["gates"] if gate["gate"] == "queue"]
    assert gate["opens_when"] == "the queue is resumed"


async def test_a_task_that_nobody_has(server: Served) -> None:
    job = await server.submit(task="strange")
    told = await of_run(server, job["id"])
    assert (told["status"], closed(told)[0]) == ("held", "task")


async def test_nobody_works(server: Served) -> None:
    job = await server.submit()
    await server.store.deregister(UUID(int=7))
    assert closed(await of_run(server, job["id"])) == ["worker"]


async def test_taken_slots(server: Served) -> None:
    for _ in range(10):
        await server.submit()
    job = await server.submit()
    for _ in range(10):
        await server.claim()
    assert closed(await of_run(server, job["id"])) == ["slots"]


async def test_a_running_and_an_ended_run(server: Served) -> None:
    job = await server.submit()
    claimed = await server.claim()
    assert "running on worker" in (await of_run(server, job["id"]))["why"]
    await server.post(f"/v1/runs/{job['id']}/cancel")
    assert closed(await of_run(server, job["id"])) == ["cancel"]
    await server.finish(claimed, State.CANCELLED)
    told = await of_run(server, job["id"])
    assert (told["status"], closed(told)) == ("cancelled", ["ended"])


async def test_a_retry_waits(server: Served) -> None:
    job = await server.submit()
    await server.finish(await server.claim(), State.RETRYING, wait=60_000_000)
    told = await of_run(server, job["id"])
    assert closed(told) == ["retry"]
    assert "2026-12-01T10:01:01" in told["why"]


async def test_a_run_held_for_another(server: Served) -> None:
    job = await server.submit(every="1m", overlap="queue_one")
    server.advance(60)
    [first] = await server.fire(job["id"])
    server.advance(60)
    [second] = await server.fire(job["id"])
    told = await of_run(server, second)
    assert closed(told) == ["overlap"]
    assert first in told["why"]
    assert closed(await of_job(server, job["id"])) == ["time", "overlap"]


async def test_jobs_before_they_run(server: Served) -> None:
    delayed = await server.submit(delay="1h")
    told = await of_job(server, delayed["id"])
    assert (told["status"], closed(told)) == ("scheduled", ["time"])
    recurring = await server.submit(cron="0 9 * * *")
    await server.post(f"/v1/jobs/{recurring['id']}/pause")
    told = await of_job(server, recurring["id"])
    assert (told["status"], closed(told)[0]) == ("paused", "pause")
    await server.post(f"/v1/jobs/{recurring['id']}/cancel")
    assert closed(await of_job(server, recurring["id"]))[0] == "state"


async def test_an_instant_that_ran_one_to_come_and_one_that_is_none(server: Served) -> None:
    job = await server.submit(cron="0 * * * *")
    server.advance(3600)
    [run] = await server.fire(job["id"])
    told = await of_job(server, job["id"], "2026-12-01T11:00:00Z")
    assert (told["status"], closed(told)) == ("queued", [])
    assert run in told["subject"] or job["id"] in told["subject"]
    coming = await of_job(server, job["id"], "2026-12-01T12:00:00Z")
    assert (coming["status"], closed(coming)) == ("scheduled", ["time"])
    none = await of_job(server, job["id"], "2026-12-01T11:30:00Z")
    assert (none["status"], closed(none)) == ("none", ["schedule"])
    assert "2026-12-01T11:00:00" in none["why"]
    assert "2026-12-01T12:00:00" in none["why"]
    before = await of_job(server, job["id"], "2026-12-01T05:00:00Z")
    assert closed(before) == ["created"]


async def test_instants_that_were_skipped(server: Served) -> None:
    job = await server.submit(cron="*/10 * * * *", misfire={"policy": "skip"})
    server.advance(3 * 3600)
    await server.fire(job["id"])
    for minute in ("10:10", "11:20", "12:40"):
        told = await of_job(server, job["id"], f"2026-12-01T{minute}:00Z")
        assert (told["status"], closed(told)) == ("skipped", ["misfire"])
    await server.post(f"/v1/jobs/{job['id']}/pause")
    server.advance(3600)
    await server.post(f"/v1/jobs/{job['id']}/resume")
    told = await of_job(server, job["id"], "2026-12-01T13:30:00Z")
    assert (told["status"], closed(told)) == ("skipped", ["paused"])


async def test_an_instant_in_a_gap_and_on_a_day_off(server: Served) -> None:
    job = await server.submit(cron="30 2 * * *", timezone="Europe/Berlin", dst={"gap": "skip"})
    told = await of_job(server, job["id"], "2027-03-28T01:00:00Z")
    assert closed(told)[0] == "dst"
    await server.send("PUT", "/v1/calendars/be", 201, json={"dates": ["2026-12-25"]})
    off = await server.submit(cron="0 9 * * *", calendar="be")
    told = await of_job(server, off["id"], "2026-12-25T09:00:00Z")
    assert closed(told)[0] == "calendar"


async def test_what_is_unknown_is_not_found(server: Served) -> None:
    await server.refused("GET", f"/v1/runs/{UUID(int=1)}/explain", 404)
    await server.refused("GET", f"/v1/jobs/{UUID(int=1)}/explain", 404)
    job = await server.submit(every="1h")
    await server.refused("GET", f"/v1/jobs/{job['id']}/explain?at=yesterday", 422)
