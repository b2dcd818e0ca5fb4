"""Idempotency-Key: the same request does its work once, whatever happens to the replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mainspring.client.direct import ClientSettings
from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import Instant
from mainspring.ports.store import Submitted
from mainspring.stores.memory import MemoryStore
from tests.support.http import ManualClock, Served, served

KEY = {"idempotency-key": "k-1"}


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        await started.register()
        yield started


async def test_the_same_request_gets_the_same_answer(server: Served) -> None:
    first = await server.http.post("/v1/jobs", json={"task": "send"}, headers=KEY)
    await server.run_one()
    again = await server.http.post("/v1/jobs", json={"task": "send"}, headers=KEY)
    assert (again.status_code, again.content) == (201, first.content)
    assert (again.headers["location"], again.headers["etag"]) == (first.headers["location"], first.headers["etag"])
    assert len((await server.get("/v1/runs"))["items"]) == 1


async def test_another_body_or_path_under_the_key_is_422(server: Served) -> None:
    await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY)
    await server.refused("POST", "/v1/jobs", 422, json={"task": "send", "priority": 1}, headers=KEY)
    await server.refused("POST", "/v1/jobs:batch", 422, json=[{"task": "send"}], headers=KEY)
    await server.refused("POST", "/v1/queues/default/pause", 422, headers=KEY)


async def test_after_a_day_the_key_is_new(server: Served) -> None:
    first = await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY)
    server.advance(24 * 3600 + 1)
    assert (await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY))["id"] != first["id"]


async def test_a_refused_request_leaves_the_key_free(server: Served) -> None:
    await server.refused("POST", "/v1/jobs", 422, json={"task": 1}, headers=KEY)
    await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY)


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
async def test_a_key_has_bounds(server: Served, key: str) -> None:
    headers = {b"idempotency-key": key.encode()}
    await server.refused("POST", "/v1/jobs", 422, json={"task": "send"}, headers=headers)


async def test_actions_are_done_once(server: Served) -> None:
    job = await server.submit(every="5m", overlap="allow")
    runs = {(await server.send("POST", f"/v1/jobs/{job['id']}/trigger", headers=KEY))["id"] for _ in range(3)}
    assert len(runs) == 1
    assert len((await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]) == 1


class SlowStore(MemoryStore):
    """Holds a submission until it is let through, or loses the reply to it."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock.store_now)
        self.arrived = asyncio.Event()
        self.through = asyncio.Event()
        self.lose_replies = 0
        self.away = False

    async def submit(self, jobs: Any, *, repeat: bool = False, now: Instant | None = None) -> list[Submitted]:
        self.arrived.set()
        await self.through.wait()
        if self.away:
            raise StoreUnavailable("connection refused")
        submitted = await super().submit(jobs, repeat=repeat, now=now)
        if self.lose_replies > 0:
            self.lose_replies -= 1
            raise StoreUnavailable("the connection broke", unknown_outcome=True)
        return submitted


async def test_while_the_first_is_in_flight_the_second_is_409() -> None:
    store = SlowStore(ManualClock())
    async with served(store=store) as server:
        first = asyncio.create_task(server.http.post("/v1/jobs", json={"task": "send"}, headers=KEY))
        await store.arrived.wait()
        response = await server.http.post("/v1/jobs", json={"task": "send"}, headers=KEY)
        assert (response.status_code, response.headers["retry-after"]) == (409, "1")
        store.through.set()
        made = (await first).json()
        again = await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY)
        assert again == made


async def test_a_takeover_after_a_crash_does_not_double() -> None:
    """The first try stored its job and died before it could answer; a minute later the key is taken over."""
    clock = ManualClock()
    store = SlowStore(clock)
    store.through.set()
    store.lose_replies = 1
    async with served(ClientSettings(patience=0), store, clock) as server:
        batch: dict[str, Any] = {"json": [{"task": "send"}, {"task": "send"}], "headers": KEY}
        assert (await server.http.post("/v1/jobs:batch", **batch)).status_code == 503
        store.lose_replies = 0
        assert (await server.http.post("/v1/jobs:batch", **batch)).status_code == 409
        server.advance(61)
        answer = await server.send("POST", "/v1/jobs:batch", 201, **batch)
        stored = {run["id"] for run in (await server.get("/v1/runs"))["items"]}
        assert stored == {item["id"] for item in answer["items"]}


async def test_a_lost_reply_is_sent_again_without_doubling() -> None:
    store = SlowStore(ManualClock())
    store.through.set()
    store.lose_replies = 2
    async with served(store=store) as server:
        job = await server.submit()
        assert [run["id"] for run in (await server.get("/v1/runs"))["items"]] == [job["id"]]


async def test_a_request_that_stored_nothing_leaves_the_key_free() -> None:
    clock = ManualClock()
    store = SlowStore(clock)
    store.through.set()
    store.away = True
    async with served(ClientSettings(patience=0), store, clock) as server:
        await server.refused("POST", "/v1/jobs", 503, json={"task": "send"}, headers=KEY)
        store.away = False
        await server.send("POST", "/v1/jobs", 201, json={"task": "send"}, headers=KEY)
