"""Pages for people, made on the server: they work without scripts and fetch nothing from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mainspring.client.direct import Direct
from mainspring.core.errors import StoreUnavailable, WorldError
from mainspring.web.overview import overview

_SECONDS_MAX = 4.5
_CACHED = {"Cache-Control": "no-cache"}
_STATIC = {"mainspring.css": "text/css", "refresh.js": "text/javascript", "mainspring.svg": "image/svg+xml"}


def pages(client: Direct) -> Mapping[str, ASGIApp]:
    """The pages by their paths."""
    found: dict[str, ASGIApp] = {"/": _Overview(client)}
    return found | {f"/static/{name}": _Static(name, media) for name, media in _STATIC.items()}


class _Overview:
    """What there is and what happens, on one page."""

    def __init__(self, client: Direct) -> None:
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._page())(scope, receive, send)

    async def _page(self) -> Response:
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                return _html("overview.html", 200, await overview(self._client))
        except TimeoutError:
            error: WorldError = StoreUnavailable("the store did not answer in time")
        except WorldError as met:
            error = met
        return _html("unreachable.html", 503, {"title": error.title, "detail": str(error)}, {"Retry-After": "1"})


class _Static:
    """A file that comes with the program."""

    def __init__(self, name: str, media: str) -> None:
        self._name = name
        self._media = media

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(_file(self._name), media_type=self._media, headers=_CACHED)(scope, receive, send)


@lru_cache(maxsize=16)
def _file(name: str) -> bytes:
    return (resources.files("mainspring.web") / "static" / name).read_bytes()


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("mainspring.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = _moment
    return environment


def _moment(instant: str) -> str:
    """To the second, as people read it; the page's `datetime` attributes keep the rest."""
    return datetime.fromisoformat(instant).strftime("%Y-%m-%d %H:%M:%S Z")


def _html(
    template: str, status: int, context: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> Response:
    text = _templates().get_template(template).render(context)
    return Response(text, status, {"Cache-Control": "no-store", **(headers or {})}, media_type="text/html")
