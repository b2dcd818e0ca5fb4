"""A client that submits through any outage: the same ids until it knows, and it writes down what was accepted."""

from __future__ import annotations

import asyncio
import json
from random import Random
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.core.ids import uuid7
from mainspring.core.model import Kind, Lane, NewJob, Run, RunFilter
from mainspring.core.states import State
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store
from mainspring.ports.store_time import StoreTime


class Producer:
    def __init__(self, store: Store, seed: int = 1) -> None:
        self.store = store
        self.random = Random(seed)
        self.accepted: list[UUID] = []
        self.schedules: list[UUID] = []
        self._time = StoreTime(store, SystemClock())
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def flood(self, per_second: float) -> None:
        """Submits until it is stopped."""
        while not self._stopped:
            await self.submit(self.random.choice(["work", "work", "flaky", "threaded"]), self.random.random() * 0.3)
            await asyncio.sleep(1 / per_second)

    async def submit(self, task: str, seconds: float | None = None, count: int = 1, **document: object) -> list[UUID]:
        """Insists until the store has answered; what it then holds is accepted."""
        await self._insist_time()
        payload = b"{}" if seconds is None else json.dumps({"seconds": seconds}).encode()
        text = json.dumps(document, sort_keys=True) if document else RETRIES
        jobs = [
            NewJob(self._identity(), Lane("default", "default", task), payload=payload, document=text)
            for _ in range(count)
        ]
        await self._insist(jobs)
        self.accepted += [job.id for job in jobs]
        return [job.id for job in jobs]

    async def schedule(self, every: float) -> UUID:
        await self._insist_time()
        due = self._time.now() + round(every * 1_000_000)
        identity = self._identity()
        job = NewJob(
            identity,
            Lane("default", "default", "work"),
            kind=Kind.RECURRING,
            document=json.dumps({"every": every, "overlap": "allow"}),
            next_at=due,
            scheduled_at=due,
        )
        await self._insist([job])
        self.schedules.append(identity)
        return identity

    async def runs(self) -> list[Run | None]:
        found: list[Run | None] = []
        for start in range(0, len(self.accepted), 500):
            found += await self.store.runs(self.accepted[start : start + 500])
        return found

    async def await_all_ended(self, seconds: float) -> list[Run | None]:
        """Polls until everything accepted has ended, or the time is over."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                runs = await self.runs()
            except WorldError:
                runs = []
            if runs and all(run is not None and run.state.ended for run in runs):
                return runs
            if asyncio.get_running_loop().time() > deadline:
                return await self.runs()
            await asyncio.sleep(0.1)

    async def unfinished(self) -> list[Run]:
        words = tuple(state.word for state in (State.QUEUED, State.RUNNING, State.RETRYING, State.UNKNOWN))
        return await self.store.list_runs(RunFilter(status=words), limit=100)

    def _identity(self) -> UUID:
        return uuid7(self._time.now(), self.random.randbytes(10))

    async def _insist(self, jobs: list[NewJob]) -> None:
        repeat = False
        while True:
            try:
                await self.store.submit(jobs, repeat=repeat)
            except WorldError:
                repeat = True
                await asyncio.sleep(0.1)
            else:
                return

    async def _insist_time(self) -> None:
        while True:
            try:
                await self._time.refresh()
            except WorldError:
                await asyncio.sleep(0.1)
            else:
                return


RETRIES = json.dumps({"retry": {"initial": "0.2s", "max": "1s", "max_attempts": 20}}, sort_keys=True)
