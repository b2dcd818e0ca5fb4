"""Runs one seed and says what happened."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from mainspring.stores.memory import MemoryStore
from mainspring.worker.settings import WorkerSettings
from tests.simulation.checkers import Case, Snapshot, judge
from tests.simulation.loop import SimulatedLoop
from tests.simulation.world import Options, World


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    violations: list[str]
    trace_hash: str
    simulated_seconds: float
    counts: Counter[str]
    steps: int

    @property
    def conclusive(self) -> bool:
        """Something happened that a fault-free run would not show."""
        return bool(self.counts["rescued"] or self.counts["stale"] or self.counts["retried"])


def run_seed(
    seed: int,
    *,
    plant: Callable[[MemoryStore], None] = lambda _: None,
    settings_plant: Callable[[WorkerSettings], WorkerSettings] = lambda settings: settings,
) -> Outcome:
    """The whole life of one simulated cluster. The same seed gives the same trace hash."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        return _run(seed, plant, settings_plant)
    finally:
        _forget_the_crashed()
        gc.enable()
        logging.disable(logging.NOTSET)


def _run(
    seed: int, plant: Callable[[MemoryStore], None], settings_plant: Callable[[WorkerSettings], WorkerSettings]
) -> Outcome:
    random = Random(seed)
    loop = SimulatedLoop(Random(random.random()))
    loop.set_exception_handler(lambda _loop, _context: None)
    world = World(loop, random, Options.drawn(random), plant=plant, settings_plant=settings_plant)
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(world.run())
        return _outcome(seed, world)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _forget_the_crashed() -> None:
    """Coroutines of crashed processes were never unwound; what their clean-up says now is of no interest."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        gc.collect()
    finally:
        sys.unraisablehook = hook


def _outcome(seed: int, world: World) -> Outcome:
    tables = world.memory.memory.tables
    snapshot = Snapshot(dict(tables.runs), dict(tables.history), dict(tables.dead_letters), dict(tables.jobs))
    case = Case(world.evidence, snapshot, world.options.lease, own_signs=world.options.own_signs)
    violations = judge(case)
    violations += [f"bug: {error!r}" for error in world.keep if isinstance(error, Exception)]
    counts = world.evidence.counts
    counts.update(rescued=case.rescued, stale=case.stale, retried=case.retried, runs=len(case.leases))
    return Outcome(seed, violations, world.evidence.trace_hash, world.loop.time(), counts, world.loop.steps)
