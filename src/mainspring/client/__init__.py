"""Clients: `Client` and `AsyncClient` speak HTTP, `Direct` speaks to a store; all have the same calls and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.client.direct import Direct as Direct
    from mainspring.client.http import AsyncClient as AsyncClient
    from mainspring.client.http import Client as Client

__all__ = ["AsyncClient", "Client", "Direct"]


def __getattr__(name: str) -> object:
    """Imported where asked for: a program that uses one of them does not pay for the others."""
    if name in ("AsyncClient", "Client"):
        from mainspring.client import http

        found: object = getattr(http, name)
        return found
    if name == "Direct":
        from mainspring.client.direct import Direct

        return Direct
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
