"""The HTTP face put together: an ASGI application over a client."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec
from starlette.requests import Request
from starlette.routing import BaseRoute, Router
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from mainspring.api import calendars, explaining, jobs, places, runs, schemas, timeline
from mainspring.api.gauges import Gauges
from mainspring.api.guard import AllowHost, Guard, is_loopback
from mainspring.api.openapi import Json, document
from mainspring.api.problems import plain
from mainspring.api.routing import Answer, Call, Endpoint, Route, Success, write_problem
from mainspring.client.direct import Direct
from mainspring.core.errors import WorldError
from mainspring.observe.metrics import Metrics

# Names that may hold a slash; all others are ids.
_WIDE = {"{key}": "{key:path}", "{queue}": "{queue:path}", "{calendar}": "{calendar:path}"}


def build(
    client: Direct,
    *,
    metrics: Metrics | None = None,
    allow_host: AllowHost = is_loopback,
    pages: Mapping[str, ASGIApp] | None = None,
) -> ASGIApp:
    """The application: /v1, health, /metrics, /openapi.json, and pages (by path) that are handed in."""
    if metrics is None:
        metrics = Metrics()
        client.bus.subscribe(metrics.listen)
    routes = all_routes(metrics)
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    served: list[BaseRoute] = [
        PathRoute(_starlette_path(path), Endpoint(methods, client), include_in_schema=False)
        for path, methods in by_path.items()
    ]
    shown = [PathRoute(path, _Page(page), include_in_schema=False) for path, page in (pages or {}).items()]
    router = Router([*served, *shown], redirect_slashes=False, default=_nothing)
    return Guard(router, allow_host=allow_host, random_bytes=client.clock.random_bytes)


def all_routes(metrics: Metrics | None = None) -> tuple[Route, ...]:
    """The table, the document about it included."""
    table = (
        *jobs.ROUTES,
        *runs.ROUTES,
        *places.ROUTES,
        *calendars.ROUTES,
        *timeline.ROUTES,
        *explaining.ROUTES,
        _metrics_route(metrics or Metrics()),
    )
    return (*table, _document_route(table))


@lru_cache(maxsize=1)
def openapi() -> Json:
    """The document of this server."""
    return document(all_routes())


def _document_route(table: tuple[Route, ...]) -> Route:
    written = msgspec.json.encode(document(table))

    async def read(call: Call) -> Answer:
        del call
        return Answer(written)

    about = Success(200, "OpenAPI 3.1", schemas.OBJECT)
    return Route("GET", "/openapi.json", "openapi", "This document", read, "health", (about,))


def _metrics_route(metrics: Metrics) -> Route:
    async def read(call: Call) -> Answer:
        try:
            gauges = Gauges(await call.client.stats()).text()
        except WorldError:
            gauges = b""  # the counters are worth having just when the store is away
        return Answer(metrics.text() + gauges, media=Metrics.content_type)

    about = Success(200, "Prometheus text", None, "text/plain")
    return Route("GET", "/metrics", "metrics", "Counters and histograms", read, "health", (about,))


def _starlette_path(path: str) -> str:
    for narrow, wide in _WIDE.items():
        path = path.replace(narrow, wide)
    return path


class _Page:
    """A page that can only be read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        problem = plain(405, "this page can only be read", {"Allow": "GET, HEAD"})
        await write_problem(problem, Request(scope))(scope, receive, send)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        detail = f"there is nothing at {scope['path'][:200]}"
        await write_problem(plain(404, detail), Request(scope))(scope, receive, send)
