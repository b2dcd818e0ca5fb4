"""What holds for every request: hosts, origins, media types, problems, headers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mainspring.client.direct import Direct
from tests.support.http import Served, served


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        yield started


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8321", "localhost", "localhost:80", "[::1]:8321", "127.8.8.8", "app.localhost"]
)
async def test_loopback_hosts_are_answered(server: Served, host: str) -> None:
    assert (await server.http.get("/livez", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "192.168.1.5",
        "localhost.evil.example",
        "",
        "a@127.0.0.1",
        "[::1",
        "x y",
    ],
)
async def test_other_hosts_are_refused(server: Served, host: str) -> None:
    for path in ("/livez", "/", "/v1/jobs", "/nothing"):
        await server.refused("GET", path, 403, headers={"host": host})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_pages_of_other_origins_change_nothing(server: Served, headers: dict[str, str]) -> None:
    await server.refused("POST", "/v1/jobs", 403, json={"task": "t"}, headers=headers)
    await server.refused("POST", "/v1/queues/default/pause", 403, headers=headers)
    assert (await server.get("/v1/jobs"))["items"] == []
    assert (await server.http.get("/v1/jobs", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers", [{"origin": "http://127.0.0.1:8321"}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}]
)
async def test_its_own_pages_may(server: Served, headers: dict[str, str]) -> None:
    await server.send("POST", "/v1/jobs", 201, json={"task": "t"}, headers=headers)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
    ],
)
async def test_only_json_is_read(server: Served, kind: str) -> None:
    for path in ("/v1/jobs", "/v1/jobs:batch"):
        await server.refused("POST", path, 415, content=b'{"task":"t"}', headers={"content-type": kind})
    await server.refused("POST", "/v1/jobs", 415, content=b"x", headers={"content-encoding": "gzip"})


async def test_unknown_paths_and_methods_are_problems(server: Served) -> None:
    for path in ("/nothing", "/v1", "/v1/jobs/", "/v1/jobs/x/y/z", "/v2/jobs", "/static/../pages.py", "/v1/workflows"):
        await server.refused("GET", path, 404)
    response = await server.http.put("/v1/jobs", json={})
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, POST")
    assert response.headers["content-type"] == "application/problem+json"
    await server.refused("POST", "/", 405)
    await server.refused("TRACE", "/v1/jobs", 405)


async def test_head_and_calls_without_a_body(server: Served) -> None:
    assert (await server.http.head("/v1/jobs")).status_code == 200
    await server.post("/v1/queues/default/pause", {})
    await server.refused("POST", "/v1/queues/default/pause", 422, json={"now": True})


async def test_the_unexpected_is_a_500_that_tells_nothing(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: Direct) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Direct, "stats", broken)
    problem = await server.refused("GET", "/v1/stats", 500, headers={"x-request-id": "abc-123"})
    assert "secret" not in problem["detail"]
    assert problem["request_id"] == "abc-123"
    assert "secret detail" in caplog.text


async def test_request_ids_are_taken_from_the_caller_only_if_harmless(server: Served) -> None:
    taken = await server.http.get("/livez", headers={"x-request-id": "a-b_c9"})
    assert taken.headers["x-request-id"] == "a-b_c9"
    for wrong in ("a b", "x" * 129, "<script>"):
        made = await server.http.get("/livez", headers={"x-request-id": wrong})
        assert made.headers["x-request-id"] != wrong


async def test_answers_carry_security_headers(server: Served) -> None:
    page = await server.http.get("/")
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    for path in ("/", "/v1/jobs", "/nothing", "/metrics", "/static/refresh.js"):
        assert (await server.http.get(path)).headers["x-content-type-options"] == "nosniff"


async def test_the_overview_shows_what_fires_next_however_much_is_newer(server: Served) -> None:
    await server.submit(delay="7m", name="the soonest")
    later = [{"task": "send", "delay": f"{hours}h"} for hours in range(1, 251)]
    await server.post("/v1/jobs:batch", later, 201)
    page = (await server.http.get("/")).text
    assert ">the soonest</td>" in page
    assert page.index(">the soonest</td>") < page.index(">send</td>")


async def test_the_overview_shows_what_there_is_as_text(server: Served) -> None:
    name = "<script>alert(1)</script>"
    await server.register()
    await server.submit(every="5m", name=name)
    await server.submit(task=name)
    await server.submit()
    await server.run_one(error='{"type":"Error","message":"<b>bad</b>","traceback":""}')
    page = (await server.http.get("/")).text
    assert name not in page
    assert "&lt;script&gt;" in page
    assert "every 5m" in page
    for asset in ("/static/mainspring.css", "/static/refresh.js"):
        assert (await server.http.get(asset)).status_code == 200
    assert "http://" not in page
