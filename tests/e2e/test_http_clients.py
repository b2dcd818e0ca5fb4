"""The HTTP clients: the same calls and errors as over a store directly, and nothing done twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import httpx2
import pytest

from mainspring.client import AsyncClient, Client, Direct
from mainspring.client.calls import Calls
from mainspring.core.errors import (
    BacklogFull,
    Conflict,
    InvalidInput,
    KeyTaken,
    MainspringError,
    NotAllowed,
    NotFound,
    StaleVersion,
    StoreUnavailable,
    TooLarge,
)
from mainspring.core.model import LogLine
from mainspring.core.states import State
from mainspring.ports.clock import SystemClock
from mainspring.stores.memory import MemoryStore
from tests.support.http import BASE, Served, served
from tests.support.live_http import live_server

NOWHERE = "01890a5d-ac96-774b-bcce-b302099a8057"


class HastyClock(SystemClock):
    """Never waits between tries."""

    def random(self) -> float:
        return 0.0


class Flaky(httpx2.AsyncBaseTransport):
    """Fails as told before or after the request has reached the application."""

    def __init__(self, server: Served, *failures: str) -> None:
        self._inner = httpx2.ASGITransport(app=server.app)
        self.failures = list(failures)
        self.reached = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "connect":
            raise httpx2.ConnectError("refused")
        self.reached += 1
        response = await self._inner.handle_async_request(request)
        if failure == "lost":
            raise httpx2.ReadError("connection reset")
        return response


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        await started.register()
        yield started


@pytest.fixture
async def client(server: Served) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(BASE, transport=httpx2.ASGITransport(app=server.app)) as opened:
        yield opened


def test_all_clients_have_the_same_calls() -> None:
    calls = {name for name, member in vars(Calls).items() if inspect.isfunction(member) and not name.startswith("_")}
    assert len(calls) > 25
    for name in calls | {"follow_logs", "close"}:
        assert callable(getattr(Direct, name))
    for name in calls:
        here = list(inspect.signature(getattr(Direct, name)).parameters)
        there = list(inspect.signature(getattr(Calls, name)).parameters)
        extra = {"ids", "idempotency_key"}
        assert [each for each in there if each not in extra] == [each for each in here if each not in extra], name


async def test_every_call_reaches_its_route(server: Served, client: AsyncClient) -> None:
    job = await client.create_job({"task": "send", "every": "5m", "key": "a/b"}, idempotency_key="k")
    identity = str(job["id"])
    assert (await client.create_job({"task": "send", "every": "5m", "key": "a/b"}, idempotency_key="k")) == job
    assert len(_items(await client.create_jobs([{"task": "send"}, {"task": "send"}]))) == 2
    assert (await client.put_job_by_key("a/b", {"task": "send", "every": "6m"}))["version"] == 2
    assert (await client.get_job(identity))["every"] == "6m"
    assert len(_items(await client.list_jobs(status=["queued", "active"], limit=2))) == 2
    assert (await client.patch_job(identity, {"priority": 9}, if_match='"2"'))["priority"] == 9
    assert (await client.pause_job(identity))["status"] == "paused"
    assert (await client.resume_job(identity, {"catch_up": "once"}))["status"] == "active"
    assert (await client.next_occurrences(identity, 3))["count"] == 3
    assert (await client.preview({"every": "1h", "count": 1}))["count"] == 1
    assert (await client.trigger_job(identity))["origin"] == "trigger"
    assert len(_items(await client.job_runs(identity))) == 1
    assert (await client.cancel_job(identity))["status"] == "cancelled"
    assert (await client.delete_job(identity))["id"] == identity
    assert (await client.stats())["dead_letters"] == 0
    assert len(_items(await client.list_queues())) == 1
    assert (await client.pause_queue("a b/c"))["paused"] is True
    assert (await client.resume_queue("a b/c"))["paused"] is False
    assert (await client.set_queue("a b/c", {"concurrency": None}))["limits"] is None
    worker = str(_items(await client.list_workers())[0]["id"])
    assert (await client.drain_worker(worker))["draining"] is True
    assert _items(await client.list_schedulers()) == []
    assert (await client.purge_queue("default"))["purged"] == 2


async def test_calls_about_runs(server: Served, client: AsyncClient) -> None:
    run = str((await client.create_job({"task": "send"}))["id"])
    await server.log(run, "one", "two")
    await server.run_one(State.FAILED)
    assert (await client.get_run(run))["status"] == "failed"
    assert len(_items(await client.list_runs(status="failed", **{"from": "2026-12-01T00:00:00Z"}))) == 1
    assert [line["message"] for line in _items(await client.run_logs(run, 0, 1))] == ["one"]
    assert [line["message"] async for line in client.follow_logs(run)] == ["one", "two"]
    assert len(_items(await client.list_dead_letters())) == 1
    again = await client.replay_dead_letter(run, {"payload": {"x": 1}})
    await server.run_one(State.FAILED)
    await client.discard_dead_letter(str(again["id"]))
    third = await client.retry_run(run)
    assert (await client.cancel_run(str(third["id"])))["status"] == "cancelled"
    fourth = await client.create_job({"task": "send", "on_lost": "hold"})
    await server.run_one(State.UNKNOWN)
    assert (await client.resolve_run(str(fourth["id"]), {"as": "completed"}))["status"] == "completed"


async def test_problems_come_back_as_the_errors_they_were(server: Served, client: AsyncClient) -> None:
    job = str((await client.create_job({"task": "send", "key": "k", "every": "5m"}))["id"])
    with pytest.raises(InvalidInput) as wrong:
        await client.create_job({"task": 1, "priority": 900})
    assert {problem.pointer for problem in wrong.value.problems} == {"/task", "/priority"}
    with pytest.raises(KeyTaken) as taken:
        await client.create_job({"task": "send", "key": "k"})
    assert (taken.value.key, taken.value.holder) == ("k", job)
    with pytest.raises(NotFound):
        await client.get_job(NOWHERE)
    with pytest.raises(NotFound):
        _ = [line async for line in client.follow_logs(NOWHERE)]
    with pytest.raises(StaleVersion):
        await client.patch_job(job, {"priority": 1}, if_match='"9"')
    with pytest.raises(TooLarge):
        await client.create_job({"task": "send", "payload": {"x": "y" * 300_000}})
    await client.cancel_job(job)
    with pytest.raises(Conflict, match="cancelled"):
        await client.pause_job(job)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, NotAllowed),
        (403, NotAllowed),
        (429, BacklogFull),
        (404, NotFound),
        (500, MainspringError),
        (422, InvalidInput),
    ],
)
async def test_answers_that_are_no_problem_documents(status: int, error: type[Exception]) -> None:
    answer = httpx2.MockTransport(lambda _: httpx2.Response(status, text="<html>proxy</html>"))
    async with AsyncClient(BASE, key="secret", transport=answer) as client:
        with pytest.raises(error):
            await client.stats()


@pytest.mark.parametrize("failures", [("connect", "connect"), ("lost",), ("connect", "lost", "lost")])
async def test_a_post_is_sent_again_and_done_once(server: Served, failures: tuple[str, ...]) -> None:
    flaky = Flaky(server, *failures)
    async with AsyncClient(BASE, transport=flaky, clock=HastyClock()) as client:
        job = await client.create_job({"task": "send"})
    assert flaky.failures == []
    assert [run["id"] for run in (await server.get("/v1/runs"))["items"]] == [job["id"]]


async def test_what_is_not_safe_to_repeat_is_not_repeated(server: Served) -> None:
    job = await server.submit(every="5m")
    flaky = Flaky(server, "lost")
    async with AsyncClient(BASE, transport=flaky, clock=HastyClock()) as client:
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await client.patch_job(str(job["id"]), {"priority": 1}, if_match='"1"')
        assert flaky.reached == 1
        flaky.failures = ["connect"]
        await client.patch_job(str(job["id"]), {"priority": 2}, if_match='"2"')


async def test_it_gives_up_in_the_end(server: Served) -> None:
    flaky = Flaky(server, *["connect"] * 1000)
    async with AsyncClient(BASE, transport=flaky, patience=0.01) as client:
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
            await client.stats()


@pytest.fixture(scope="module")
def live() -> Iterator[tuple[str, MemoryStore]]:
    store = MemoryStore()
    with live_server(store) as address:
        yield address, store


def test_the_client_without_a_loop(live: tuple[str, MemoryStore]) -> None:
    address, store = live
    with Client(address.removeprefix("http://")) as client:
        job = client.create_job({"task": "send", "payload": {"a": 1}})
        run = str(job["id"])
        assert client.get_job(run)["payload"] == {"a": 1}
        assert [each["id"] for each in _items(client.list_jobs(task="send"))] == [run]
        with pytest.raises(InvalidInput):
            client.create_job({"task": 5})
        line = LogLine(UUID(run), 1, 0, "info", "hello")
        asyncio.run(store.append_logs([line]))
        assert client.cancel_run(run)["status"] == "cancelled"
        assert [each["message"] for each in client.follow_logs(run)] == ["hello"]
        with pytest.raises(NotFound):
            list(client.follow_logs(NOWHERE))


async def test_nobody_there_is_told_with_the_address() -> None:
    where = r"http://127\.0\.0\.1:1"
    with Client("http://127.0.0.1:1", patience=0.0) as client, pytest.raises(StoreUnavailable, match=where):
        client.stats()
    async with AsyncClient("http://127.0.0.1:1", patience=0.0) as other:
        with pytest.raises(StoreUnavailable, match=where):
            await other.stats()


def _items(page: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page["items"]
    return found
