"""The OpenAPI 3.1 document, written from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from mainspring.api import schemas
from mainspring.api.body import LINES
from mainspring.api.problems import MEDIA_TYPE
from mainspring.api.routing import Body, Query, Route, Success
from mainspring.api.time_schemas import TIME_COMPONENTS

Json = dict[str, object]

_IN_PATH = re.compile(r"\{(\w+)\}")
_REASONS = {
    403: "A foreign Host or Origin",
    404: "There is no such thing",
    409: "The state forbids it, or the same request is still in flight",
    412: "If-Match names an older version",
    413: "Larger than its bound",
    415: "Not JSON",
    422: "The input is not valid; `errors` names each field",
    429: "Too much is queued already",
    500: "A fault of this server",
    503: "The store does not answer; try again",
}
_RETRIED = (429, 503)


def document(routes: Iterable[Route], *, title: str = "Mainspring") -> Json:
    """Everything that this server offers."""
    paths: dict[str, Json] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": program_version(),
            "description": "Every job on time, once; and where that did not happen, a record that says why.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": {**schemas.COMPONENTS, **TIME_COMPONENTS}},
    }


def program_version() -> str:
    """As it was installed."""
    try:
        return version("mainspring")
    except PackageNotFoundError:
        return "0"


def _operation(route: Route) -> Json:
    parameters = [
        *(_path_parameter(name) for name in _IN_PATH.findall(route.path)),
        *(_query_parameter(each) for each in route.query if not each.name.endswith("*")),
        *(_header_parameter(name) for name in _request_headers(route)),
    ]
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "responses": _responses(route),
    }
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = _request_body(route.body)
    return operation


def _path_parameter(name: str) -> Json:
    schema = schemas.ID if name == "id" else schemas.NAME
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(query: Query) -> Json:
    found: Json = {"name": query.name, "in": "query", "description": query.about, "schema": query.schema}
    if query.many:
        found |= {"schema": schemas.array(dict(query.schema)), "style": "form", "explode": True}
    return found


def _request_headers(route: Route) -> list[str]:
    return [*route.headers, *(["Idempotency-Key"] if route.takes_idempotency_key else [])]


def _header_parameter(name: str) -> Json:
    about = "The same key and request get the same answer for 24 hours" if name == "Idempotency-Key" else "An ETag"
    schema: Json = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return {"name": name, "in": "header", "description": about, "schema": schema}


def _request_body(body: Body) -> Json:
    content: Json = {"application/json": {"schema": body.schema}}
    if body.batch:
        content |= {kind: {"schema": {"type": "string"}} for kind in LINES[:1]}
    return {"required": body.required, "content": content}


def _responses(route: Route) -> Json:
    found: Json = {}
    for success in route.answers:
        held = found.setdefault(str(success.status), _success(success))
        assert isinstance(held, dict)
        if success.media not in held.get("content", {}):
            held["content"][success.media] = {"schema": success.schema or {"type": "string"}}
    for status in sorted(_failures(route)):
        found[str(status)] = _failure(status)
    found["default"] = _failure(None)
    return found


def _success(success: Success) -> Json:
    found: Json = {
        "description": success.about,
        "content": {success.media: {"schema": success.schema or {"type": "string"}}},
    }
    if success.headers:
        found["headers"] = {name: {"schema": {"type": "string"}, "required": True} for name in success.headers}
    return found


def _failures(route: Route) -> set[int]:
    found = {403, 500, 503, *route.fails}
    if "{id}" in route.path:
        found.add(404)
    if route.body is not None or route.query or "{" in route.path or route.method == "POST":
        found.add(422)
    if route.method == "POST":
        found.add(409)
    if route.body is not None or route.method != "GET":
        found |= {413, 415}
    return found


def _failure(status: int | None) -> Json:
    found: Json = {
        "description": _REASONS.get(status, "Anything else that fails") if status else "Anything else that fails",
        "content": {MEDIA_TYPE: {"schema": schemas.ref("Problem")}},
    }
    if status in _RETRIED:
        found["headers"] = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds"}}
    return found
