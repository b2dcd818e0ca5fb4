"""The HTTP face over the memory store in this process, with a clock that only moves when told, and a worker's hands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2

from mainspring.api.server import build
from mainspring.client.direct import ClientSettings, Direct
from mainspring.core.firing import plan_firing
from mainspring.core.model import Claimed, Ending, Instant, LogLine, TaskInfo, WorkerInfo
from mainspring.core.states import Outcome, State
from mainspring.core.times import read_instant
from mainspring.observe.events import Bus
from mainspring.stores.memory import MemoryStore
from mainspring.web.pages import pages

Json = dict[str, Any]
WORKER = UUID(int=7)
START = read_instant("2026-12-01T10:00:00Z", "")
BASE = "http://127.0.0.1:8321"


class ManualClock:
    """Stands still until it is moved; chance is a counter."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self._drawn = 0

    def monotonic(self) -> float:
        return self.seconds

    def random(self) -> float:
        return 0.5

    def random_bytes(self, count: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(8, "big").rjust(count, b"\x01")[:count]

    def store_now(self) -> Instant:
        return START + round((self.seconds - 1000.0) * 1_000_000)


class Served:
    """A server, and what a scheduler and a worker would do beside it."""

    def __init__(
        self,
        settings: ClientSettings | None = None,
        store: MemoryStore | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.store = store or MemoryStore(self.clock.store_now)
        self.direct = Direct(self.store, self.clock, Bus(), settings)
        self.app = build(self.direct, pages=pages(self.direct))
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app), base_url=BASE)

    def advance(self, seconds: float) -> None:
        self.clock.seconds += seconds

    async def send(self, method: str, path: str, expect: int = 200, **parts: Any) -> Json:
        """The answer's object, once the status is the expected one."""
        response = await self.http.request(method, path, **parts)
        assert response.status_code == expect, response.text
        found: Json = response.json()
        return found

    async def get(self, path: str, expect: int = 200) -> Json:
        return await self.send("GET", path, expect)

    async def post(self, path: str, body: object = None, expect: int = 200) -> Json:
        return await self.send("POST", path, expect, **({} if body is None else {"json": body}))

    async def submit(self, **fields: Any) -> Json:
        return await self.post("/v1/jobs", {"task": "send", **fields}, 201)

    async def refused(self, method: str, path: str, status: int, **parts: Any) -> Json:
        """The problem document of a refusal."""
        response = await self.http.request(method, path, **parts)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/problem+json"
        problem: Json = response.json()
        assert problem["status"] == status
        assert problem["title"]
        assert problem["request_id"] == response.headers["x-request-id"]
        return problem

    async def register(self, *tasks: TaskInfo) -> None:
        """A worker begins that has these tasks."""
        info = WorkerInfo(WORKER, "host", 1, (), 10, "0", 30_000_000)
        await self.store.register(info, tasks or (TaskInfo("send"),))
        self.advance(1.1)

    async def claim(self) -> Claimed:
        tasks = [task.name for task in await self.store.known_tasks()]
        claimed = await self.store.claim(WORKER, tasks=tasks, queues=None, count=1)
        assert claimed, "nothing is ready"
        return claimed[0]

    async def finish(self, claimed: Claimed, state: State = State.COMPLETED, **parts: Any) -> None:
        outcome = {State.COMPLETED: Outcome.COMPLETED, State.CANCELLED: Outcome.CANCELLED}.get(state, Outcome.FAILED)
        ending = Ending(claimed.id, claimed.fence, state, outcome, spent=1, **parts)
        await self.store.finish(WORKER, [ending])

    async def run_one(self, state: State = State.COMPLETED, **parts: Any) -> str:
        """Claims what is first in line and ends it so."""
        claimed = await self.claim()
        await self.finish(claimed, state, **parts)
        return str(claimed.id)

    async def fire(self, job_id: str) -> list[str]:
        """What a scheduler would do about the job now."""
        view = (await self.store.jobs([UUID(job_id)]))[0]
        assert view is not None
        calendars = await self.direct.calendars()
        firing = plan_firing(view.job, self.clock.store_now(), calendars=calendars)
        if firing is None:
            return []
        fired = await self.store.fire([firing])
        return [str(run) for run in fired[0].runs]

    async def log(self, run_id: str, *messages: str) -> None:
        lines = [LogLine(UUID(run_id), 1, self.clock.store_now(), "info", message) for message in messages]
        await self.store.append_logs(lines)


@asynccontextmanager
async def served(
    settings: ClientSettings | None = None, store: MemoryStore | None = None, clock: ManualClock | None = None
) -> AsyncIterator[Served]:
    server = Served(settings, store, clock)
    async with server.http:
        yield server


def pointers(problem: Mapping[str, Any]) -> dict[str, str]:
    return {error["pointer"]: error["detail"] for error in problem["errors"]}
