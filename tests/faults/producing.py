"""A client that submits through any outage: the same ids until it knows, and it writes down what was accepted."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from random import Random
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.core.ids import uuid7
from mainspring.core.model import Job, JobState, Kind, Lane, NewJob, Run, RunFilter
from mainspring.core.states import State
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import JobEdit, Store
from mainspring.ports.store_time import StoreTime


class Producer:
    def __init__(self, store: Store, seed: int = 1) -> None:
        self.store = store
        self.random = Random(seed)
        self.accepted: list[UUID] = []
        self.schedules: dict[UUID, tuple[int, int]] = {}
        self._time = StoreTime(store, SystemClock())
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    async def flood(self, per_second: float) -> None:
        """Submits until it is stopped."""
        while not self._stopped:
            await self.submit(self.random.choice(["work", "work", "flaky", "threaded"]), self.random.random() * 0.5)
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
            document=json.dumps({"every": every, "overlap": "allow", "retry": RETRY}),
            next_at=due,
            scheduled_at=due,
        )
        await self._insist([job])
        self.schedules[identity] = (due, round(every * 1_000_000))
        return identity

    async def end_schedules(self) -> list[str]:
        """Pauses them, and answers what is wrong: each instant up to the last has one record (A3). Their runs count as accepted."""
        problems = []
        for identity, (first, step) in self.schedules.items():
            await self._insist_pause(identity)
            runs = await self.store.list_runs(RunFilter(job_id=identity), limit=1000)
            instants = sorted(run.scheduled_at + number * step for run in runs for number in range(run.count))
            began = min(instants, default=first)
            expected = list(range(began, max(instants, default=began) + 1, step))
            if not first - step <= began <= first + step:
                problems.append(f"A3 schedule {identity} began at {began}, due was {first}")
            if instants != expected:
                missing, extra = set(expected) - set(instants), Counter(instants) - Counter(expected)
                problems.append(f"A3 schedule {identity} of {step} us lacks {sorted(missing)}, has too many {extra}")
            self.accepted += [run.id for run in runs if run.state is not State.SKIPPED]
        return problems

    async def _insist_pause(self, identity: UUID) -> None:
        while True:
            try:
                (view,) = await self.store.jobs([identity])
                assert view is not None
                if await self.store.change(_paused(view.job)) is not None:
                    return
            except WorldError:
                await asyncio.sleep(0.2)

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


def _paused(job: Job) -> JobEdit:
    return JobEdit(
        job.id,
        job.version,
        state=JobState.PAUSED,
        next_at=job.next_at,
        next_scheduled_at=job.scheduled_at,
        fired_through=job.fired_through,
    )


RETRY = {"initial": "0.2s", "max": "1s", "max_attempts": 20}
RETRIES = json.dumps({"retry": RETRY}, sort_keys=True)
