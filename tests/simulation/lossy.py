"""The port between a simulated process and the store: slow, failing before and after the commit, cut off at times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Any
from uuid import UUID

from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import Instant
from mainspring.ports.store import Capabilities, Hint, Migrations
from mainspring.stores.memory import MemoryStore
from tests.simulation.evidence import Entry, Evidence
from tests.simulation.loop import Process, current_process

SILENT_VERBS = frozenset(
    {
        "now",
        "workers",
        "signs",
        "next_wake",
        "due_jobs",
        "coming_jobs",
        "known_tasks",
        "schedulers",
        "runs",
        "jobs",
        "logs",
    }
)


@dataclass(slots=True)
class Weather:
    """How bad the world is right now; all zero after healing."""

    error_before: float = 0.0
    error_after: float = 0.0
    delay: float = 0.0
    crash_at_verb: float = 0.0
    hint_lost: float = 0.0
    hint_doubled: float = 0.0


class Network:
    """Shared by all ports: the weather, outages of the store and processes that are cut off."""

    def __init__(self, random: Random, now: Callable[[], Instant]) -> None:
        self.random = random
        self.now = now
        self.weather = Weather()
        self.outage_until: Instant = 0
        self.cut_off: dict[str, Instant] = {}

    def reachable(self, process: Process) -> bool:
        now = self.now()
        return now >= self.outage_until and now >= self.cut_off.get(process.name, 0)

    def heal(self) -> None:
        self.weather = Weather()
        self.outage_until = 0
        self.cut_off.clear()


class LossyStore:
    """A store as one process sees it. Every verb takes effect on the memory store at one instant, or not at all."""

    def __init__(
        self,
        memory: MemoryStore,
        process: Process,
        network: Network,
        evidence: Evidence,
        crash: Callable[[Process], None],
    ) -> None:
        self._memory = memory
        self._process = process
        self._network = network
        self._evidence = evidence
        self._crash = crash
        self._context = Context()
        self._context.run(current_process.set, process)

    @property
    def capabilities(self) -> Capabilities:
        return self._memory.capabilities

    @property
    def migrations(self) -> Migrations:
        return self._memory.migrations

    def subscribe(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        def hear(hint: Hint) -> None:
            loop = asyncio.get_running_loop()
            for _ in range(self._copies()):
                delay = self._network.random.random() * 0.02
                loop.call_later(delay, self._deliver, listener, hint, context=self._context)

        return self._memory.subscribe(hear)

    def _deliver(self, listener: Callable[[Hint], None], hint: Hint) -> None:
        if self._network.reachable(self._process):
            listener(hint)

    def _copies(self) -> int:
        drawn = self._network.random.random()
        weather = self._network.weather
        if drawn < weather.hint_lost:
            return 0
        return 2 if drawn < weather.hint_lost + weather.hint_doubled else 1

    def __getattr__(self, verb: str) -> Any:
        target = getattr(self._memory, verb)

        async def call(*arguments: Any, **named: Any) -> Any:
            sent_at = self._network.now()
            await self._travel()
            await self._may_crash()
            self._require(unknown_outcome=False)
            answer = await target(*arguments, **named)
            self._record(verb, arguments, named, answer)
            if verb == "register":
                self._evidence.worker_process[arguments[0].id] = self._process.name
            await self._may_crash()
            await self._return_trip()
            if verb in ("beat", "register"):
                self._acknowledge(verb, arguments, sent_at)
            return answer

        return call

    async def _travel(self) -> None:
        await asyncio.sleep(0.0002 + self._network.random.random() * self._network.weather.delay)
        if self._network.random.random() < self._network.weather.error_before:
            raise StoreUnavailable("simulated: refused before the commit")

    async def _return_trip(self) -> None:
        await asyncio.sleep(0.0002 + self._network.random.random() * self._network.weather.delay)
        if self._network.random.random() < self._network.weather.error_after:
            self._evidence.counts["lost_reply"] += 1
            raise StoreUnavailable("simulated: the reply was lost", unknown_outcome=True)
        self._require(unknown_outcome=True)

    def _require(self, *, unknown_outcome: bool) -> None:
        if not self._network.reachable(self._process):
            raise StoreUnavailable("simulated: unreachable", unknown_outcome=unknown_outcome)

    async def _may_crash(self) -> None:
        """Dies here with the weather's chance; what follows in this process never happens."""
        mortal = self._process.name.startswith(("worker", "scheduler"))
        if mortal and self._network.random.random() < self._network.weather.crash_at_verb:
            self._crash(self._process)
            await asyncio.get_running_loop().create_future()

    def _record(self, verb: str, arguments: tuple[Any, ...], named: dict[str, Any], answer: Any) -> None:
        if verb not in SILENT_VERBS:
            self._evidence.record(Entry(self._network.now(), self._process.name, verb, (arguments, named), answer))

    def _acknowledge(self, verb: str, arguments: tuple[Any, ...], sent_at: Instant) -> None:
        workers: list[UUID] = [arguments[0].id] if verb == "register" else list(arguments[0])
        for worker in workers:
            self._evidence.acknowledged.setdefault(worker, []).append((sent_at, self._network.now()))
