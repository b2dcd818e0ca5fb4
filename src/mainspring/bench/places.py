"""Where a workload stores its runs: a schema or a file of its own, counted from outside of the product's own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mainspring.bench.floor import Floor
from mainspring.bench.measured import Tally


@dataclass(frozen=True, slots=True)
class Description:
    """What a figure depends on and the store knows."""

    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)


class Place(Protocol):
    """One kind of store. `url` names the workload's own part of it; `create` makes it, schema and all."""

    kind: str
    url: str

    async def create(self) -> None: ...

    async def remove(self) -> None: ...

    async def describe(self) -> Description: ...

    def floor(self) -> Floor: ...

    async def queued(self) -> bool:
        """Whether any run waits to be claimed: cheap enough to ask beside a drain."""
        ...

    async def live(self) -> bool:
        """Whether any run has not ended."""
        ...

    async def tally(self) -> Tally: ...

    async def spans(self, begin: str, end: str) -> Sequence[int]:
        """Of each ended run the microseconds from one column of history to another."""
        ...

    async def skipped(self) -> int:
        """How many occurrences have a record that says why they did not run."""
        ...

    async def overtaken(self) -> int:
        """How many runs started after one of a lower priority had."""
        ...

    async def by_priority(self) -> Sequence[tuple[int, int, int]]:
        """Of each priority, highest first: by how many microseconds its first and its last run were late."""
        ...

    async def rest(self) -> None:
        """Brings the store to rest before something is stored: what is left to do is not charged to what follows."""
        ...

    async def settle(self) -> None:
        """After something was stored: what upkeep would have done by the time that it is needed. The floor does the same."""
        ...

    def cpu_seconds(self) -> float | None:
        """What the store's own processes have used so far; None where there are none, or on another machine."""
        ...


def place_for(store: str) -> Place:
    """A place beside what this URL names, not yet created."""
    if store.startswith("sqlite"):
        from mainspring.bench.place_sqlite import SqlitePlace

        return SqlitePlace(store)
    from mainspring.bench.place_postgres import PostgresPlace

    return PostgresPlace(store)
