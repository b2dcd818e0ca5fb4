"""Memory and each real store through random histories: no difference; and a planted one is found."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from mainspring.core.model import Ending, Evidence, Firing, Instant, NewJob, Verdict
from mainspring.ports.store import Fired, Rescued, Store, Submitted
from mainspring.stores.memory import MemoryStore
from mainspring.stores.memory.tables import Tables
from tests.contract.conftest import migrated, migrated_postgres, postgres_store, sqlite_store
from tests.contract.databases import lend
from tests.contract.side_by_side import GENTLE, machine_on
from tests.support.servers import PostgresServer


@pytest.mark.timeout(600)
def test_sqlite_answers_as_memory_does() -> None:
    def make() -> tuple[Store, Callable[[], None]]:
        folder = tempfile.TemporaryDirectory()
        path = str(Path(folder.name) / "mainspring.db")
        migrated(sqlite_store(path))
        return sqlite_store(path), folder.cleanup

    run_state_machine_as_test(machine_on(make), settings=settings(GENTLE, max_examples=60))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [15, 18])
def test_postgres_answers_as_memory_does(version: int, request: pytest.FixtureRequest) -> None:
    server: PostgresServer = request.getfixturevalue(f"postgres{version}_server")

    def make() -> tuple[Store, Callable[[], None]]:
        lent = lend(server, migrated_postgres)
        return postgres_store(next(lent)), lent.close

    few = settings(GENTLE, max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    run_state_machine_as_test(machine_on(make), settings=few)


def test_memory_answers_as_itself() -> None:
    """The machine itself is sound: it finds no difference where there is none."""
    run_state_machine_as_test(
        machine_on(lambda: (MemoryStore(), lambda: None)), settings=settings(GENTLE, max_examples=30)
    )


# --- the machine finds what it is there to find


class AnyFence(MemoryStore):
    """Takes an ending whatever fence it carries."""

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        rows = await self.runs([ending.id for ending in endings])
        forged = [
            replace(ending, fence=run.fence) if run is not None else ending
            for ending, run in zip(endings, rows, strict=True)
        ]
        return await super().finish(worker, forged, now=now)


class DeafToCancels(MemoryStore):
    """A cancel of what runs is forgotten before the ending arrives."""

    async def finish(self, worker: UUID, endings: Sequence[Ending], *, now: Instant | None = None) -> list[Verdict]:
        for ending in endings:
            run = self.memory.tables.runs.get(ending.id)
            if run is not None:
                run.cancel_requested_at = None
        return await super().finish(worker, endings, now=now)


class FiresAgain(MemoryStore):
    """Forgets how far a job was fired through."""

    async def fire(self, firings: Sequence[Firing], *, now: Instant | None = None) -> list[Fired]:
        for job in self.memory.tables.jobs.values():
            job.fired_through = 0
        return await super().fire(firings, now=now)


class RescuesTheLiving(MemoryStore):
    """Takes runs from workers that nobody declared lost."""

    async def rescue(self, *, limit: int = 500, random_value: float = 0.5, now: Instant | None = None) -> list[Rescued]:
        for worker in list(self.memory.tables.workers):
            await self.declare_lost(worker, Evidence.SILENCE, now=now)
        return await super().rescue(limit=limit, random_value=random_value, now=now)


class InsertsRepeats(MemoryStore):
    """A repeat is stored again once the first run has ended."""

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        ended = repeat and all(job.id in self.memory.tables.history for job in jobs)
        return await super().submit(jobs, repeat=repeat and not ended, now=now)


class NeverReleases(MemoryStore):
    """What is held for overlap stays held."""

    def __init__(self) -> None:
        super().__init__()
        self.memory.tables = StuckTables()
        self._tables = self.memory.tables


class StuckTables(Tables):
    def release_next(self, job_id: UUID, now: Instant) -> None:
        del job_id, now


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "planted", [AnyFence, DeafToCancels, FiresAgain, RescuesTheLiving, InsertsRepeats, NeverReleases]
)
def test_a_planted_difference_is_found(planted: type[MemoryStore]) -> None:
    looking = settings(GENTLE, max_examples=150, derandomize=True, database=None, phases=[Phase.generate])
    machine = machine_on(lambda: (planted(), lambda: None))
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=looking)
