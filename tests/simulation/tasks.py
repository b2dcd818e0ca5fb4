"""The tasks that simulated workers carry out, and the ledger that they write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from uuid import UUID

from mainspring.core.errors import Cancel, Discard, RetryLater
from mainspring.core.model import Instant
from mainspring.tasks.context import current_run
from mainspring.tasks.registry import Registry
from tests.simulation.evidence import Evidence, Mark
from tests.simulation.loop import Process


class Handlers:
    """One worker process's tasks. Effects go to the ledger, which is never faulted."""

    def __init__(
        self,
        process: Process,
        worker: Callable[[], UUID],
        evidence: Evidence,
        random: Random,
        now: Callable[[], Instant],
        crash: Callable[[Process], None],
    ) -> None:
        self._process = process
        self._worker = worker
        self._evidence = evidence
        self._random = random
        self._now = now
        self._crash = crash

    def registry(self) -> Registry:
        registry = Registry()
        for function in (
            self.work,
            self.flaky,
            self.broken,
            self.later,
            self.discards,
            self.cancels,
            self.stubborn,
            self.poison,
        ):
            registry.add(function, name=function.__name__)
        return registry

    async def work(self, seconds: float = 0.05) -> str:
        """Succeeds after some time."""
        return await self._carry_out(seconds)

    async def flaky(self, seconds: float = 0.05, failures: int = 1) -> str:
        """Fails the first times."""
        await self._carry_out(seconds)
        if current_run().attempt <= failures:
            raise RuntimeError("flaky")
        return "done"

    async def broken(self, seconds: float = 0.05) -> str:
        """Never succeeds."""
        await self._carry_out(seconds)
        raise RuntimeError("broken")

    async def later(self, seconds: float = 0.05) -> str:
        """Asks once to be tried again later."""
        await self._carry_out(seconds)
        if current_run().attempt == 1:
            raise RetryLater(2)
        return "done"

    async def discards(self, seconds: float = 0.05) -> str:
        await self._carry_out(seconds)
        raise Discard("of no use")

    async def cancels(self, seconds: float = 0.05) -> str:
        await self._carry_out(seconds)
        raise Cancel("changed its mind")

    async def stubborn(self, seconds: float = 30.0) -> str:
        """Does not stop when it is cancelled, at first."""
        self._mark("start")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            await asyncio.sleep(0.5)
            raise
        finally:
            self._mark("end")
        return "done"

    async def poison(self) -> None:
        """Kills the process that carries it out."""
        self._mark("start")
        await asyncio.sleep(0.01)
        self._evidence.counts["poison_death"] += 1
        self._crash(self._process)
        await asyncio.get_running_loop().create_future()

    async def _carry_out(self, seconds: float) -> str:
        self._mark("start")
        try:
            await asyncio.sleep(seconds * (0.5 + self._random.random()))
        finally:
            self._mark("end")
        return "done"

    def _mark(self, kind: str) -> None:
        run = current_run()
        self._evidence.mark(
            Mark(
                self._now(),
                self._process.name,
                self._worker(),
                kind,
                UUID(str(run.id)),
                UUID(str(run.job_id)),
                run.fence,
                run.attempt,
            )
        )
