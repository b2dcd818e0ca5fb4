"""Queues, workers, schedulers, numbers, health and the document over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from mainspring.api.server import all_routes, openapi
from mainspring.core.model import SECOND
from tests.support.http import WORKER, Served, served


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        await started.register()
        yield started


async def test_queues_show_what_stands_in_them(server: Served) -> None:
    await server.submit(queue="mail")
    await server.submit(queue="mail", task="nobody")
    await server.submit(queue="mail")
    await server.claim()
    (queue,) = (await server.get("/v1/queues"))["items"]
    assert queue == {"name": "mail", "paused": False, "queued": 1, "running": 1, "held": 1, "limits": None}


async def test_a_paused_queue_gives_nothing_until_resumed(server: Served) -> None:
    await server.submit(queue="a/b c")
    path = "/v1/queues/a%2Fb%20c"
    assert (await server.post(f"{path}/pause"))["paused"] is True
    assert (await server.post(f"{path}/pause"))["paused"] is True
    assert await server.store.claim(WORKER, tasks=["send"], queues=None, count=1) == []
    assert (await server.post(f"{path}/resume"))["paused"] is False
    await server.claim()


async def test_purge_cancels_what_waits(server: Served) -> None:
    ids = [(await server.submit(queue="mail"))["id"] for _ in range(3)]
    await server.claim()
    assert await server.post("/v1/queues/mail/purge") == {"name": "mail", "purged": 2}
    states = [(await server.get(f"/v1/runs/{identity}"))["status"] for identity in ids]
    assert states == ["running", "cancelled", "cancelled"]


async def test_limits_of_queues_are_not_offered_yet(server: Served) -> None:
    problem = await server.refused("PUT", "/v1/queues/mail", 422, json={"concurrency": 3, "speed": 1})
    assert {error["pointer"] for error in problem["errors"]} == {"/concurrency", "/speed"}
    assert all("null" in error["detail"] for error in problem["errors"] if error["pointer"] == "/concurrency")
    for cleared in ({}, {"concurrency": None}, {"concurrency": None, "rate": None}):
        assert (await server.send("PUT", "/v1/queues/mail", json=cleared))["limits"] is None


@pytest.mark.parametrize("name", ["%00", "%20", "%09", "x" * 257])
async def test_names_of_queues_have_bounds(server: Served, name: str) -> None:
    await server.refused("POST", f"/v1/queues/{name}/pause", 422)


async def test_workers_are_listed_and_drained(server: Served) -> None:
    await server.submit()
    await server.claim()
    (worker,) = (await server.get("/v1/workers"))["items"]
    assert (worker["id"], worker["running"], worker["slots"], worker["draining"]) == (str(WORKER), 1, 10, False)
    assert (await server.post(f"/v1/workers/{WORKER}/drain"))["draining"] is True
    await server.refused("POST", f"/v1/workers/{UUID(int=99)}/drain", 404)


async def test_schedulers_and_stats(server: Served) -> None:
    scheduler = UUID(int=5)
    await server.store.scheduler_beat(scheduler, host="here", silent_after=4 * SECOND)
    await server.submit(every="5m")
    await server.submit()
    (listed,) = (await server.get("/v1/schedulers"))["items"]
    assert (listed["id"], listed["host"]) == (str(scheduler), "here")
    stats = await server.get("/v1/stats")
    assert (stats["workers"], stats["schedulers"], stats["dead_letters"]) == (1, 1, 0)
    assert stats["by_status"] == {"active": 1, "queued": 1}
    assert stats["next_fire_at"] == "2026-12-01T10:05:01.100Z"


async def test_health(server: Served) -> None:
    assert await server.get("/livez") == {"status": "ok"}
    assert await server.get("/readyz") == {"status": "ok"}


async def test_metrics_count_what_was_submitted(server: Served) -> None:
    await server.submit()
    response = await server.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    names = [line.split("{")[0].split(" ")[0] for line in response.text.splitlines() if not line.startswith("#")]
    assert 'mainspring_jobs_submitted_total{task="send"} 1.0' in response.text
    assert 'mainspring_queue_runs{queue="default",status="queued"} 1.0' in response.text
    assert names
    assert all(name.startswith("mainspring_") for name in names)


async def test_the_document_lists_every_route(server: Served) -> None:
    document = await server.get("/openapi.json")
    assert document["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(route.method, route.path) for route in all_routes() if route.path != "/openapi.json"}
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert openapi()["openapi"] == "3.1.0"


async def test_small_lists_have_pages_too(server: Served) -> None:
    names = ["a/b", "b", "ü"]
    for name in names:
        await server.submit(queue=name)
    seen: list[str] = []
    path = "/v1/queues?limit=1"
    while path:
        page = await server.get(path)
        seen += [queue["name"] for queue in page["items"]]
        path = f"/v1/queues?limit=1&cursor={page['next']}" if page["next"] else ""
    assert seen == names
    assert len((await server.get("/v1/workers?limit=5"))["items"]) == 1
    for query in ("cursor=x", "cursor=AAAA", "limit=0", "sort=name"):
        for listed in ("queues", "workers", "schedulers"):
            await server.refused("GET", f"/v1/{listed}?{query}", 422)
