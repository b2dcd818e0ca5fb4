"""Which store a URL means, and how one is opened by a program that wants to go on living."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from mainspring.config import Settings
from mainspring.core.errors import InvalidInput, SchemaError, StoreUnavailable
from mainspring.ports.store import Store

T = TypeVar("T")

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 5.0

_log = logging.getLogger("mainspring.app")
_memory_stores: dict[str, Store] = {}


def open_store(settings: Settings) -> Store:
    """The store that the settings name, not yet connected. Each kind is imported only where it is used."""
    _refuse_other_places(settings)
    url = settings.store
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise InvalidInput.at("store", f"{url!r} is no URL; write sqlite:///file.db or postgresql://user@host/database")
    if scheme == "sqlite":
        from mainspring.stores.sqlite.store import SqliteStore

        return SqliteStore(
            sqlite_path(url), journal=None if settings.sqlite_journal == "auto" else settings.sqlite_journal
        )
    if scheme in ("postgresql", "postgres"):
        return _postgres(url)
    if scheme == "memory":
        return _memory(url)
    raise InvalidInput.at(
        "store", f"{scheme}:// is no store; it can be sqlite:///file.db or postgresql://user@host/database"
    )


def sqlite_path(url: str) -> Path:
    """`sqlite:///name` lies in the working folder, `sqlite:////name` at the root."""
    path = url.removeprefix("sqlite://")
    if not path.startswith("/") or path == "/":
        raise InvalidInput.at(
            "store", f"{url!r} names no file; write sqlite:///mainspring.db, or sqlite:////var/lib/m.db"
        )
    return Path.cwd() / path[1:]


async def migrate(store: Store, settings: Settings, *, allowed: bool) -> list[str]:
    """Makes the schema fit where that is allowed: always on SQLite and on an empty database, else only if told to."""
    status = await store.migrations.status()
    missing = [name for name, applied in status if not applied]
    if not missing:
        return []
    empty = len(missing) == len(status)
    if not (allowed or empty or not settings.store.startswith("postgres")):
        raise SchemaError(
            f"the schema lacks {', '.join(missing)}; run `mainspring migrate up`, or start with --migrate, "
            "once no program older than the last release is left"
        )
    return await store.migrations.up()


async def prepare_store(store: Store, settings: Settings) -> None:
    """Opens a store for a client: a SQLite file is brought up to date first, a database is taken as it is."""
    if not settings.store.startswith("postgres"):
        await migrate(store, settings, allowed=True)
    await store.open()


async def open_patiently(store: Store, settings: Settings, *, allowed: bool) -> None:
    """Opens a store for a role, however long that takes."""

    async def open_it() -> None:
        await migrate(store, settings, allowed=allowed)
        await store.open()

    await patiently(open_it)


async def patiently(action: Callable[[], Awaitable[T]]) -> T:
    """While the store cannot be reached it says so and tries again, with growing waits and jitter."""
    wait = BACKOFF_FIRST_SECONDS
    while True:
        try:
            return await action()
        except StoreUnavailable as error:
            _log.warning("the store is unreachable: %s; trying again in %.1f s", error, wait)
        await asyncio.sleep(wait)
        wait = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS + random.random() * wait * 3)


def _postgres(url: str) -> Store:
    if find_spec("asyncpg") is None:
        raise InvalidInput.at(
            "store", "PostgreSQL needs a package that is not installed; run: pip install 'mainspring[postgres]'"
        )
    from mainspring.stores.postgres.store import PostgresStore

    return PostgresStore(url)


def _memory(url: str) -> Store:
    """One for each name in this process, so that the parts of a test meet in it."""
    if url not in _memory_stores:
        from mainspring.stores.memory.store import MemoryStore

        _memory_stores[url] = MemoryStore()
    return _memory_stores[url]


def _refuse_other_places(settings: Settings) -> None:
    for name, value in (("queue", settings.queue), ("coordination", settings.coordination)):
        if value not in ("", "store", settings.store):
            raise InvalidInput.at(
                name,
                f"{value!r}: this version keeps the ready queue and the coordination in the store itself; "
                f"leave {name} out or set it to the store's URL",
            )
