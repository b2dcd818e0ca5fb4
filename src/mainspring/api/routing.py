"""One table of routes, from which requests are served and the OpenAPI document is written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mainspring.api import body as bodies
from mainspring.api.problems import MEDIA_TYPE, Problem, plain, problem_of
from mainspring.client.direct import Direct
from mainspring.client.identity import Ids
from mainspring.core.errors import InvalidInput, MainspringError, StoreUnavailable
from mainspring.core.fields import PROBLEMS_MAX, Problems, nearest

Schema = Mapping[str, object]

_JSON = "application/json"
_KEY_MAX = 255
SECONDS_MAX = 4.5  # a store that is away is told within five seconds


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter; `many` may be given more than once, a name ending in `*` stands for all with that beginning."""

    name: str
    schema: Schema
    about: str
    many: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries."""

    schema: Schema
    required: bool = True
    bytes_max: int = bodies.BODY_BYTES_MAX
    batch: bool = False


@dataclass(frozen=True, slots=True)
class Success:
    """One way to be answered well."""

    status: int
    about: str
    schema: Schema | None = None
    media: str = _JSON
    headers: tuple[str, ...] = ()


@dataclass(slots=True)
class Call:
    """A request whose parts have been read and bounded."""

    client: Direct
    path: Mapping[str, str]
    query: dict[str, object]
    headers: Mapping[str, str]
    body: object = None
    ids: Ids | None = None

    def body_object(self) -> Mapping[str, object] | None:
        """The body where one is optional."""
        if self.body is None or isinstance(self.body, Mapping):
            return self.body
        raise InvalidInput.at("", "must be an object")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    lines: AsyncIterator[bytes] | None = None
    media: str = _JSON


Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, what it takes, and what it answers."""

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    tag: str
    answers: tuple[Success, ...]
    query: tuple[Query, ...] = ()
    body: Body | None = None
    fails: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()
    seconds_max: float = SECONDS_MAX

    @property
    def takes_idempotency_key(self) -> bool:
        return self.method == "POST"


class Endpoint:
    """All methods of one path, as an ASGI application."""

    def __init__(self, routes: Mapping[str, Route], client: Direct) -> None:
        self._routes = routes
        self._client = client
        self._allowed = ", ".join(sorted({*routes, "HEAD"} if "GET" in routes else routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        route = self._routes.get(method)
        if route is None:
            allowed = {"Allow": self._allowed}
            return write_problem(
                plain(405, f"{request.method} is not allowed here; {self._allowed} is", allowed), request
            )
        try:
            return await serve(route, request, self._client)
        except MainspringError as error:
            return write_problem(problem_of(error), request)


async def serve(route: Route, request: Request, client: Direct) -> Response:
    """Reads the request by its route, carries it out within its time, and writes the answer."""
    raw = await bodies.read_bytes(request, route.body.bytes_max if route.body else bodies.BODY_BYTES_MAX)
    call = Call(
        client=client,
        path=request.path_params,
        query=read_query(route, request),
        headers=request.headers,
        body=_read_body(route, request, raw),
    )
    try:
        async with asyncio.timeout(route.seconds_max):
            if route.seconds_max > SECONDS_MAX:
                await _reach(client)
            return await _carry_out(route, request, call, raw)
    except TimeoutError:
        raise StoreUnavailable("the store did not answer in time; try again", unknown_outcome=True) from None


async def _reach(client: Direct) -> None:
    """What may take long must not wait long for a store that is away."""
    async with asyncio.timeout(SECONDS_MAX):
        await client.ping()


async def _carry_out(route: Route, request: Request, call: Call, raw: bytes) -> Response:
    if "If-Match" in route.headers:
        _check_header("If-Match", request.headers.get("if-match", "*"))
    key = request.headers.get("idempotency-key") if route.takes_idempotency_key else None
    if key is None:
        return write(await route.handler(call))
    _check_header("Idempotency-Key", key)

    async def act(ids: Ids | None) -> tuple[int, bytes]:
        call.ids = ids
        answer = await route.handler(call)
        return answer.status, msgspec.json.encode({"headers": dict(answer.headers), "body": answer.body})

    status, stored = await call.client.once(key, _fingerprint(request, raw), act)
    kept = msgspec.json.decode(stored, type=_Kept)
    return Response(bytes(kept.body), status, {**kept.headers, "Cache-Control": "no-store"}, media_type=_JSON)


class _Kept(msgspec.Struct):
    headers: dict[str, str]
    body: msgspec.Raw


def read_query(route: Route, request: Request) -> dict[str, object]:
    """The query parameters; what is unknown or given twice is refused."""
    if not request.scope["query_string"]:
        return {}
    known = {each.name: each for each in route.query}
    prefixes = [name[:-1] for name in known if name.endswith("*")]
    problems = Problems()
    found: dict[str, object] = {}
    for name, value in request.query_params.multi_items():
        one = known.get(name)
        if len(problems.found) >= PROBLEMS_MAX:
            break
        if one is None and not any(name.startswith(prefix) for prefix in prefixes):
            problems.add(f"/{name}", f"is no query parameter here{nearest(name, known)}")
        elif one is not None and one.many:
            values = found.setdefault(name, [])
            assert isinstance(values, list)
            values.append(value)
        elif name in found:
            problems.add(f"/{name}", "is given twice")
        else:
            found[name] = value
    problems.raise_if_any()
    return found


def _read_body(route: Route, request: Request, raw: bytes) -> object:
    if route.body is None:
        if raw.strip():
            bodies.require_json(bodies.media_type(request))
            if bodies.decode(raw) not in ({}, None):
                raise InvalidInput.at("", "this call takes no body")
        return None
    kind = bodies.media_type(request)
    if route.body.batch:
        return bodies.decode_batch(raw, kind)
    if not raw.strip() and not route.body.required:
        return None
    bodies.require_json(kind)
    if not raw.strip():
        raise InvalidInput.at("", "is empty; send a JSON object")
    found = bodies.decode(raw)
    if found is None:
        raise InvalidInput.at("", "must be an object, not null")
    return found


def _check_header(name: str, value: str) -> None:
    if not 1 <= len(value) <= _KEY_MAX or not value.isascii() or not value.isprintable():
        raise InvalidInput.at("", f"{name} must have 1 to {_KEY_MAX} printable ASCII characters")


def _fingerprint(request: Request, raw: bytes) -> bytes:
    line = f"{request.method} {request.url.path}?{request.scope['query_string'].decode('latin-1')}\n"
    return hashlib.blake2b(line.encode() + raw, digest_size=32).digest()


def write(answer: Answer) -> Response:
    headers = {**answer.headers, "Cache-Control": "no-store"}
    if answer.lines is not None:
        return StreamingResponse(answer.lines, answer.status, headers, media_type=answer.media)
    content = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
    return Response(content, answer.status, headers, media_type=answer.media)


def write_problem(problem: Problem, request: Request) -> Response:
    request_id = str(request.scope.get("state", {}).get("request_id", ""))
    headers = {**problem.headers, "Cache-Control": "no-store"}
    return Response(problem.encode(request_id), problem.status, headers, media_type=MEDIA_TYPE)
