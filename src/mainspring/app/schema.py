"""The schema of a store, for people who look after it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mainspring.app.stores import open_store
from mainspring.config import Settings
from mainspring.ports.store import Migrations

T = TypeVar("T")


def apply_missing(settings: Settings) -> list[str]:
    """The names of what was applied."""
    return asyncio.run(_with_migrations(settings, lambda migrations: migrations.up()))


def steps(settings: Settings) -> list[tuple[str, bool]]:
    """Each step's name and whether it is applied."""
    return asyncio.run(_with_migrations(settings, lambda migrations: migrations.status()))


def script(settings: Settings) -> str:
    return open_store(settings).migrations.sql()


async def _with_migrations(settings: Settings, action: Callable[[Migrations], Awaitable[T]]) -> T:
    store = open_store(settings)
    try:
        return await action(store.migrations)
    finally:
        await store.close()
