"""One fixture over every store. Real ones are migrated first; one that cannot be opened fails its own tests only."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import asyncpg
import pytest

from mainspring.ports.store import Store
from mainspring.stores.memory import MemoryStore
from tests.contract.databases import in_own_loop, lend
from tests.support.servers import PostgresServer

BACKENDS = ("memory", "sqlite", "postgres15", "postgres18")

MakeStore = Callable[[], Store]
OpenStore = Callable[[], Awaitable[Store]]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_store(backend: str, request: pytest.FixtureRequest) -> MakeStore:
    """Makes handles on one migrated store that nobody else uses; they are not open yet."""
    return maker_for(backend, request)


@pytest.fixture
async def open_store(make_store: MakeStore) -> AsyncIterator[OpenStore]:
    """Opens as many handles on it as a test wants, as so many programs would."""
    opened: list[Store] = []

    async def open_one() -> Store:
        store = make_store()
        await store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()


@pytest.fixture
async def other(open_store: OpenStore, store: Store) -> Store:
    """A second program on the same store."""
    return await open_store()


@pytest.fixture
def make_empty_store(backend: str, request: pytest.FixtureRequest) -> MakeStore:
    """Makes handles on one store that was never migrated."""
    if backend == "memory":
        return maker_for(backend, request)
    if backend == "sqlite":
        path = str(request.getfixturevalue("tmp_path") / "empty.db")
        return lambda: sqlite_store(path)
    url = str(request.getfixturevalue(f"{backend}_url"))
    return lambda: postgres_store(url)


@dataclass(frozen=True)
class Books:
    """The schema's own books, to be falsified: statements for the store that `make_empty_store` makes."""

    run: Callable[[str], None]
    checksum: str
    min_program: str


@pytest.fixture
def books(backend: str, request: pytest.FixtureRequest) -> Books | None:
    """None where there is no schema."""
    if backend == "memory":
        return None
    if backend == "sqlite":
        path = str(request.getfixturevalue("tmp_path") / "empty.db")
        least = "insert or replace into meta (name, value) values ('min_program', '99')"
        return Books(partial(in_sqlite, path), "update migrations set checksum = 'f'", least)
    url = str(request.getfixturevalue(f"{backend}_url"))
    return Books(
        partial(in_postgres, url),
        "update mainspring.migrations set checksum = 'f'",
        "update mainspring.migrations set min_program = 99",
    )


def in_sqlite(path: str, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(statement)


def in_postgres(url: str, statement: str) -> None:
    async def execute() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    in_own_loop(execute())


def maker_for(backend: str, request: pytest.FixtureRequest) -> MakeStore:
    if backend == "memory":
        first = MemoryStore()
        return lambda: MemoryStore(memory=first.memory)
    if backend == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        path = str(folder / "mainspring.db")
        migrated(sqlite_store(path))
        return lambda: sqlite_store(path)
    url = str(request.getfixturevalue(f"contract_{backend}_url"))
    return lambda: postgres_store(url)


def sqlite_store(path: str) -> Store:
    from mainspring.stores.sqlite.store import SqliteStore

    return SqliteStore(path)


def postgres_store(url: str) -> Store:
    from mainspring.stores.postgres.store import PostgresStore

    return PostgresStore(url)


def migrated(store: Store) -> None:
    async def migrate() -> None:
        await store.migrations.up()
        await store.close()

    in_own_loop(migrate())


def migrated_postgres(url: str) -> None:
    migrated(postgres_store(url))


@pytest.fixture
def contract_postgres15_url(postgres15_server: PostgresServer) -> Iterator[str]:
    yield from lend(postgres15_server, migrated_postgres)


@pytest.fixture
def contract_postgres18_url(postgres18_server: PostgresServer) -> Iterator[str]:
    yield from lend(postgres18_server, migrated_postgres)
