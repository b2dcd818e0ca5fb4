"""What all parts of the store share: its connections, its SQL, the lanes it knows, its hints."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from mainspring.core.model import DAY, Instant, Lane
from mainspring.ports.store import Hint, Topic
from mainspring.stores.postgres.connection import Address
from mainspring.stores.postgres.hints import Hints
from mainspring.stores.postgres.pool import Pool
from mainspring.stores.shared import load_queries

if TYPE_CHECKING:
    import asyncpg

Answer = TypeVar("Answer")

HERE = Path(__file__).parent
QUERIES = load_queries(HERE / "sql")
CLOCK_AGE_MAX_SECONDS = 30.0
_EQUALITY = re.compile(r"\((\w+\.\w+) = (\w+\.\w+)\)")
LOOKED_BACK = 2 * DAY  # how far before its id's own time a run can have ended


def for_schema(sql: str, schema: str) -> str:
    """The SQL files are written for the schema `mainspring`."""
    return sql.replace("mainspring.", f'"{schema}".')


def statements(address: Address) -> dict[str, str]:
    """Every block as it is sent there.

    Plans that are kept may have been made on empty tables, where to read all of a table and look for each row among
    the keys seems cheap. Written as a list of one, an equality (in parentheses in the files) can only be used the
    other way round: from each key into the index. Plans that are made anew each time need no such help.
    """
    sql = {name: for_schema(text, address.schema) for name, text in QUERIES.items()}
    if address.pooler:
        return sql | {"claim": sql["claim"].replace("{places}", sql["places_listed"])}
    sql |= {"claim": sql["claim"].replace("{places}", sql["places_joined"])}
    return {name: _EQUALITY.sub(r"\1 = ANY (ARRAY[\2])", text) for name, text in sql.items()}


class Base:
    """One pool for the verbs, and a connection of its own for signs of life: an exhausted pool accuses nobody."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._pool = Pool(address, address.pool_size)
        self._vital = Pool(address, 1)
        self._hints = Hints(address)
        self._sql = statements(address)
        self._lane_ids: dict[Lane, int] = {}
        self._lanes: dict[int, Lane] = {}
        self._known: set[tuple[str, str]] = set()
        self._held: dict[UUID, set[UUID]] = {}  # what this program's workers were handed and have not finished
        self._clock: tuple[float, Instant] | None = None

    def _use(self, address: Address) -> None:
        """What opening found out about the way to the server."""
        self._sql.update(statements(address))
        self._address = self._pool.address = self._vital.address = self._hints.address = address

    @property
    def address(self) -> Address:
        return self._address

    # --- asking

    async def _read(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        return await self._pool.statement(self._sql[name], *arguments)

    async def _write(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        """One writing statement that is its own transaction."""
        return await self._pool.statement(self._sql[name], *arguments, writes=True)

    async def _transact(self, body: Callable[[asyncpg.Connection], Awaitable[Answer]]) -> Answer:
        return await self._pool.transact(body)

    async def _rows(self, connection: asyncpg.Connection, name: str, *arguments: object) -> list[asyncpg.Record]:
        """One statement of a transaction."""
        return list(await connection.fetch(self._sql[name], *arguments))

    async def _instant(self, connection: asyncpg.Connection, now: Instant | None) -> Instant:
        """The store's now within a transaction."""
        if now is not None:
            return now
        return int(await connection.fetchval(self._sql["instant"], None))

    # --- the clock

    async def now(self) -> Instant:
        """The store's clock."""
        rows = await self._vital.statement(self._sql["instant"], None)
        instant = int(rows[0][0])
        self._clock = (time.monotonic(), instant)
        return instant

    async def _about_now(self) -> Instant:
        """Good to some milliseconds: for bounds of a day and for pruning, never for what is due."""
        if self._clock is None or time.monotonic() - self._clock[0] > CLOCK_AGE_MAX_SECONDS:
            return await self.now()
        taken, instant = self._clock
        return instant + round((time.monotonic() - taken) * 1_000_000)

    # --- lanes

    async def _intern(self, lanes: Iterable[Lane]) -> dict[Lane, int]:
        """The numbers of these lanes; new ones are added before the transaction that needs them, and stay."""
        missing = {lane for lane in lanes if lane not in self._lane_ids}
        if missing:
            columns = zip(
                *((lane.namespace, lane.queue, lane.task, lane.region, lane.placement) for lane in sorted(missing)),
                strict=True,
            )
            arguments = [list(column) for column in columns]
            await self._write("add_lanes", *arguments)
            await self._load_lanes()
        return self._lane_ids

    async def _load_lanes(self) -> None:
        for row in await self._read("lanes"):
            lane = Lane(*row[1:6])
            self._lane_ids[lane] = row[0]
            self._lanes[row[0]] = lane

    async def _lanes_of(self, numbers: Iterable[int]) -> dict[int, Lane]:
        if any(number not in self._lanes for number in numbers):
            await self._load_lanes()
        return self._lanes

    async def _are_known(self, lanes: Iterable[Lane]) -> set[tuple[str, str]]:
        """Those of the lanes' (namespace, task) that a worker registered at some time; that never becomes untrue."""
        asked = {(lane.namespace, lane.task) for lane in lanes}
        unsure = sorted(asked - self._known)
        if unsure:
            names = [list(column) for column in zip(*unsure, strict=True)]
            self._known.update((row[0], row[1]) for row in await self._read("registered", *names))
        return self._known

    # --- hints

    def _ready(self, queues: Iterable[str]) -> None:
        self._hints.publish(Hint(Topic.READY, queue) for queue in set(queues))

    async def _lanes_ready(self, numbers: Iterable[int]) -> None:
        numbers = set(numbers)
        if numbers:
            lanes = await self._lanes_of(numbers)
            self._ready(lanes[number].queue for number in numbers)

    def _call_workers(self, workers: Iterable[UUID | None]) -> None:
        self._hints.publish(Hint(Topic.WORKER, str(worker)) for worker in set(workers) if worker is not None)

    def _jobs_changed(self) -> None:
        self._hints.publish((Hint(Topic.JOBS),))


def ordered(ids: Sequence[UUID]) -> list[UUID]:
    """Locks are taken in the order of ids, so that two batches never wait for one another."""
    return sorted(set(ids))
