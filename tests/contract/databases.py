"""A database per test on PostgreSQL, made once a process and emptied between tests: many times faster than a copy.

What holds rows right after the migration (the schema's own books) is left as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import TypeVar
from urllib.parse import urlsplit

import asyncpg

from tests.support.servers import PostgresServer

TABLES = """
    select format('%I.%I', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    order by 1
"""

Answer = TypeVar("Answer")

_kept: dict[str, tuple[str, frozenset[str]]] = {}


def lend(server: PostgresServer, migrate: Callable[[str], None]) -> Generator[str, None, None]:
    """The URL of an empty, migrated database; emptied afterwards, or thrown away if that fails."""
    place = urlsplit(server.start()).netloc
    if place not in _kept:
        made = server.create_database()
        migrate(made)
        _kept[place] = (made, frozenset(in_own_loop(_filled(made))))
    url, books = _kept[place]
    try:
        yield url
    finally:
        try:
            in_own_loop(_empty(url, books))
        except (OSError, asyncpg.PostgresError):
            del _kept[place]
            server.drop_database(url)
            raise


async def _filled(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        names = [str(row[0]) for row in await connection.fetch(TABLES)]
        return [name for name in names if await connection.fetchval(f"select exists (select from {name})")]
    finally:
        await connection.close()


async def _empty(url: str, books: frozenset[str]) -> None:
    """Waits for no lock for long: a test that left a transaction open is a finding."""
    connection = await asyncpg.connect(url)
    try:
        names = [str(row[0]) for row in await connection.fetch(TABLES)]
        deletes = "; ".join(f"delete from {name}" for name in names if name not in books)
        await connection.execute(f"set lock_timeout = '10s'; {deletes}")
    finally:
        await connection.close()


def in_own_loop(work: Coroutine[object, object, Answer]) -> Answer:
    """On a thread, so that it runs inside and outside of an event loop."""
    answers: list[Answer] = []
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            answers.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - handed on to the test's thread
            failures.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return answers[0]
