"""The client for the place that the settings name: a server over HTTP, or a store directly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mainspring.app.stores import open_store, prepare_store, sqlite_path
from mainspring.config import Settings
from mainspring.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from mainspring.client.direct import Direct
    from mainspring.client.http import AsyncClient

    AnyClient = Direct | AsyncClient

PATIENCE_SECONDS = 1.0  # a person at a terminal would rather know, and try again


async def connect(settings: Settings) -> AnyClient:
    """Speaks to the server if one is named more strongly than a store, else to the store."""
    if _wants_server(settings):
        from mainspring.client.http import AsyncClient

        return AsyncClient(settings.server, key=settings.key or None, patience=PATIENCE_SECONDS)
    return await connect_store(settings)


async def connect_store(settings: Settings) -> Direct:
    from mainspring.app.connection import direct_of

    _refuse_to_invent(settings)
    store = open_store(settings)
    try:
        await prepare_store(store, settings)
    except BaseException:
        await store.close()
        raise
    return direct_of(store, settings)


def _wants_server(settings: Settings) -> bool:
    if not settings.server:
        return False
    return not (_is_flag(settings, "store") and not _is_flag(settings, "server"))


def _is_flag(settings: Settings, name: str) -> bool:
    return re.match("flag|argument", settings.origins.get(name, "")) is not None


def _refuse_to_invent(settings: Settings) -> None:
    """A new file is made for who names it; the default one only by `up`, or each folder would get one by mistake."""
    if settings.is_default("store") and not sqlite_path(settings.store).exists():
        raise StoreUnavailable(
            f"there is no {settings.store} in this folder, and neither --server nor --store was given; "
            "start one with `mainspring up`"
        )
