"""Every row of the table of inputs: what is wrong is named, and nothing is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mainspring.client.direct import ClientSettings
from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import Instant, NewJob
from mainspring.ports.store import Submitted
from mainspring.stores.memory import MemoryStore
from tests.support.http import Served, pointers, served

JSON = {"content-type": "application/json"}
MEBIBYTE = 1024 * 1024


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        yield started
        await started.register()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{bad",
        b"nul",
        b'{"task": "t"',
        b'{"task": NaN}',
        b'{"task": "t", "payload": {"x": 1e400}}',
        b'{"task": "\\ud800"}',
        b'{"task": "\xed\xa0\x80"}',
        b"\xff\xfe",
        b'{"task": "t", "payload": {"n": ' + b"1" * 5000 + b"}}",
        b'{"task": "t", "payload": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b"[" * 100_000,
    ],
    ids=lambda body: body[:24].decode("latin-1"),
)
async def test_bad_json_is_422(server: Served, body: bytes) -> None:
    for headers in (JSON, {}):
        await server.refused("POST", "/v1/jobs", 422, content=body, headers=headers)
        await server.refused("POST", "/v1/jobs:batch", 422, content=body or b"{", headers=headers)


@pytest.mark.parametrize(
    ("fields", "pointer", "says"),
    [
        ({"task": 1}, "/task", "text"),
        ({"task": "t", "priority": "high"}, "/priority", "0 to 100"),
        ({"task": "t", "tags": {}}, "/tags", "list"),
        ({"task": "t", "tiemout": 5}, "/tiemout", "timeout"),
        ({"task": "t", "overlap": "sometimes"}, "/overlap", "queue_all"),
        ({"task": "t", "retry": {"backoff": "cubic"}}, "/retry/backoff", "exponential"),
        ({"task": "t", "cron": "61 * * * *"}, "/cron", "61"),
        ({"task": "t", "cron": "* * * *"}, "/cron", ""),
        ({"task": "t", "cron": "*/0 * * * *"}, "/cron", ""),
        ({"task": "t", "cron": "1-99999999 * * * *"}, "/cron", ""),
        ({"task": "t", "cron": "٣ * * * *"}, "/cron", ""),
        ({"task": "t", "cron": "* " * 500_000}, "/cron", ""),
        ({"task": "t", "cron": "0 0 31 2 *"}, "/cron", "never fires"),
        ({"task": "t", "cron": "* * * * *", "timezone": "Europe/Berln"}, "/timezone", "Europe/Berlin"),
        ({"task": "t", "cron": "* * * * *", "timezone": "../../etc/passwd"}, "/timezone", ""),
        ({"task": "t", "cron": "* * * * *", "timezone": "UTC\x00"}, "/timezone", ""),
        ({"task": "t", "every": "5m", "end_at": "2020-01-01T00:00:00Z"}, "/end_at", "never fires"),
        ({"task": "t", "at": "2026-12-01T10:00:00"}, "/at", "offset"),
        ({"task": "t", "every": "5m", "start_at": "2026-12-01T10:00:00"}, "/start_at", "offset"),
        ({"task": "t", "at": "2030-01-01T00:00:00Z", "cron": "* * * * *"}, "/cron", "at most one"),
        ({"priority": 5}, "/task", "exactly one"),
        ({"task": "t", "http": {"url": "http://127.0.0.1"}}, "/http", ""),
        ({"task": "t", "delay": "-5m"}, "/delay", "negative"),
        ({"task": "t", "payload": {"x": "\u0000"}}, "/payload", "NUL"),
        ({"task": "t", "status": "completed"}, "/status", "unknown"),
        ({"task": "t", "fence": 3, "namespace": "x"}, "/fence", "unknown"),
        ({"task": "t", "after": [{"job": "x"}]}, "/after", "does not offer"),
    ],
)
async def test_wrong_fields_are_422_and_named(server: Served, fields: dict[str, Any], pointer: str, says: str) -> None:
    problem = await server.refused("POST", "/v1/jobs", 422, content=json.dumps(fields), headers=JSON)
    assert says in pointers(problem)[pointer]
    assert (await server.get("/v1/jobs"))["items"] == []


async def test_everything_wrong_is_named_at_once(server: Served) -> None:
    problem = await server.refused("POST", "/v1/jobs", 422, json={"task": 1, "priority": 900, "cron": "x", "zzz": 1})
    assert set(pointers(problem)) == {"/task", "/priority", "/cron", "/zzz"}
    assert problem["type"] == "urn:mainspring:invalid-input"


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "/limit"),
        ("limit=-1", "/limit"),
        ("limit=1001", "/limit"),
        ("limit=1000000000", "/limit"),
        ("limit=ten", "/limit"),
        ("limit=%D9%A3", "/limit"),
        ("limit=1&limit=2", "/limit"),
        ("sort=name", "/sort"),
        ("status=done", "/status"),
        ("kind=weekly", "/kind"),
        ("created_after=2026-12-01T10:00:00", "/created_after"),
        ("cursor=x", "/cursor"),
        ("cursor=AaH1nTqoetCXFvQ8EiLlLL0eyFmz", "/cursor"),
        ("task=%00", "/task"),
        ("payload.=1", "/payload."),
        ("strict_tasks=true", "/strict_tasks"),
    ],
)
async def test_wrong_queries_are_422(server: Served, query: str, pointer: str) -> None:
    assert pointer in pointers(await server.refused("GET", f"/v1/jobs?{query}", 422))


@pytest.mark.parametrize("text", ["%25", "'", ";--", "_", "\\", "%27%20OR%201=1"])
async def test_strange_texts_in_filters_find_nothing(server: Served, text: str) -> None:
    await server.submit()
    assert (await server.get(f"/v1/jobs?q={text}"))["items"] == []
    assert (await server.get(f"/v1/jobs?payload.a={text}&tag={text}"))["items"] == []


async def test_a_cursor_belongs_to_its_list(server: Served) -> None:
    for _ in range(2):
        await server.submit()
    cursor = (await server.get("/v1/jobs?limit=1"))["next"]
    await server.refused("GET", f"/v1/runs?cursor={cursor}", 422)


async def test_bounds_of_payload_and_body(server: Served) -> None:
    def body(payload_bytes: int) -> bytes:
        return b'{"task":"t","payload":{"a":"%s"}}' % (b"x" * (payload_bytes - len('{"a":""}')))

    await server.send("POST", "/v1/jobs", 201, content=body(256 * 1024), headers=JSON)
    problem = await server.refused("POST", "/v1/jobs", 413, content=body(256 * 1024 + 1), headers=JSON)
    assert "256 KiB" in problem["detail"]
    spaces = b'{"task":"t"}'.ljust(4 * MEBIBYTE)
    await server.send("POST", "/v1/jobs", 201, content=spaces, headers=JSON)
    await server.refused("POST", "/v1/jobs", 413, content=spaces + b" ", headers=JSON)


async def test_a_body_without_a_length_is_read_no_further_than_its_bound(server: Served) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 65_536
            yield b" " * 65_536

    await server.refused("POST", "/v1/jobs", 413, content=endless(), headers=JSON)
    assert taken <= 4 * MEBIBYTE + 2 * 65_536


async def test_a_body_that_comes_too_slowly_is_408(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.api.body.SECONDS_MAX", -1e9)
    never = asyncio.Event()

    sent: list[Any] = []

    async def receive() -> Any:
        await never.wait()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/jobs", "query_string": b"", "headers": headers}
    await server.app(scope, receive, send)
    assert sent[0]["status"] == 408


async def test_bounds_of_a_batch(server: Served) -> None:
    most = json.dumps([{"task": "t"}] * 10_000).encode()
    await server.send("POST", "/v1/jobs:batch", 201, content=most, headers=JSON)
    more = json.dumps([{"task": "t"}] * 10_001).encode()
    assert "10000" in (await server.refused("POST", "/v1/jobs:batch", 413, content=more, headers=JSON))["detail"]
    large = b"[" + b" " * (64 * MEBIBYTE) + b"]"
    await server.refused("POST", "/v1/jobs:batch", 413, content=large, headers=JSON)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/x",
        "/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057",
        "/v1/runs/%00",
        "/v1/runs/00000000-0000-0000-0000-0",
    ],
)
async def test_unknown_ids_are_404(server: Served, path: str) -> None:
    await server.refused("GET", path, 404)


async def test_a_backlog_over_its_bound_is_429() -> None:
    async with served(ClientSettings(ready_limit=3)) as server:
        for _ in range(3):
            await server.submit()
        response = await server.http.post("/v1/jobs", json={"task": "send"})
        assert (response.status_code, response.headers["retry-after"]) == (429, "1")
        await server.refused("POST", "/v1/jobs:batch", 429, json=[{"task": "send"}])
        await server.submit(queue="other")
        await server.submit(delay="5m")
        await server.submit(every="5m")


class GoneStore(MemoryStore):
    """Answers nothing once it is gone; `hangs` says nothing at all instead."""

    gone = False
    hangs = False

    async def now(self) -> Instant:
        await self._answer()
        return await super().now()

    async def submit(self, jobs: Any, *, repeat: bool = False, now: Instant | None = None) -> list[Submitted]:
        await self._answer()
        found: list[NewJob] = list(jobs)
        return await super().submit(found, repeat=repeat, now=now)

    async def _answer(self) -> None:
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.gone:
            raise StoreUnavailable("connection refused")


async def test_an_unreachable_store_is_503_and_says_when_to_try_again() -> None:
    store = GoneStore()
    async with served(ClientSettings(patience=0), store=store) as server:
        store.gone = True
        for method, path in (("POST", "/v1/jobs"), ("GET", "/readyz"), ("POST", "/v1/jobs:batch")):
            body: dict[str, Any] = (
                {"json": [{"task": "t"}] if "batch" in path else {"task": "t"}} if method == "POST" else {}
            )
            response = await server.http.request(method, path, **body)
            assert response.status_code == 503, response.text
            assert response.headers["retry-after"] == "1"
            assert response.headers["content-type"] == "application/problem+json"
        await server.get("/livez")
        assert (await server.http.get("/metrics")).status_code == 200
        page = await server.http.get("/")
        assert (page.status_code, "unreachable" in page.text) == (503, True)


async def test_a_store_that_says_nothing_is_503_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.api.routing.SECONDS_MAX", 0.05)
    store = GoneStore()
    async with served(store=store) as server:
        store.hangs = True
        await server.refused("POST", "/v1/jobs:batch", 503, json=[{"task": "t"}])


async def test_a_wrong_input_of_many_parts_is_refused_in_no_time(server: Served) -> None:
    many = {f"f{number}": 1 for number in range(300_000)}
    bodies = [{"task": "t", **many}, {"task": "t", "retry": many}, {"task": "t", "tags": list(range(500_000))}]
    loop = asyncio.get_running_loop()
    for body in bodies:
        content = json.dumps(body).encode()
        started = loop.time()
        problem = await server.refused("POST", "/v1/jobs", 422, content=content, headers=JSON)
        assert loop.time() - started < 2
        assert len(problem["errors"]) <= 102
    query = "&".join(f"p{number}=1" for number in range(6_000))
    assert len((await server.refused("GET", f"/v1/jobs?{query}", 422))["errors"]) <= 101
