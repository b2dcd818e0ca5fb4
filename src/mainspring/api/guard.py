"""What every request passes first: which host it names, where it comes from, its id; and what every answer carries."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mainspring.api.problems import Problem, plain, problem_of
from mainspring.api.routing import write_problem
from mainspring.core.errors import MainspringError

_logger = logging.getLogger("mainspring.api")
_READING = ("GET", "HEAD", "OPTIONS")
_REQUEST_ID_MAX = 128
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

AllowHost = Callable[[str], bool]


def is_loopback(host: str) -> bool:
    """Whether a Host header names this machine's loopback: until keys exist nobody else may speak to the server,
    and a page from elsewhere whose name was made to point here must not either."""
    try:
        name = urlsplit(f"//{host}").hostname if host and not set(host) & set("/?#@\\ ") else None
        if name is None or name == "localhost" or name.endswith(".localhost"):
            return name is not None
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Guard:
    """The outermost layer: nothing gets past it without an id, and nothing fails without a problem document."""

    def __init__(self, app: ASGIApp, *, allow_host: AllowHost, random_bytes: Callable[[int], bytes]) -> None:
        self._app = app
        self._allow_host = allow_host
        self._random_bytes = random_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers, self._random_bytes)
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, request_id)
        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await write_problem(refusal, Request(scope))(scope, receive, answer)
                return
            await self._app(scope, receive, answer)
        except MainspringError as error:
            await answer.fail(problem_of(error), scope, receive)
        except Exception:  # the boundary: whatever it is, the caller gets a problem and the log its traceback
            _logger.exception("request %s failed", request_id)
            await answer.fail(plain(500, "an unexpected error; the log has it under the request id"), scope, receive)

    def _refusal(self, scope: Scope, headers: Headers) -> Problem | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allow_host(hosts[0]):
            shown = hosts[0][:100] if hosts else "none"
            return plain(
                403,
                f"the Host header names {shown!r}; without keys this server answers to localhost and 127.0.0.1 only",
            )
        if scope["method"] not in _READING and _is_foreign(headers, hosts[0]):
            return plain(403, "a page of another origin may not change anything here")
        return None


class _Answer:
    """Sends on what the application sends, with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self._started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            headers = MutableHeaders(scope=message)
            _add(headers, _HEADERS)
            headers["X-Request-Id"] = self._request_id
            if headers.get("content-type", "").startswith("text/html"):
                _add(headers, _PAGE_HEADERS)
        await self._send(message)

    async def fail(self, problem: Problem, scope: Scope, receive: Receive) -> None:
        """Nothing can be said any more once the answer has begun."""
        if self._started:
            raise ConnectionResetError("the answer had begun when it failed")
        await write_problem(problem, Request(scope))(scope, receive, self)


def _add(headers: MutableHeaders, more: Mapping[str, str]) -> None:
    for name, value in more.items():
        headers.setdefault(name, value)


def _request_id(headers: Headers, random_bytes: Callable[[int], bytes]) -> str:
    given = headers.get("x-request-id", "")
    if 0 < len(given) <= _REQUEST_ID_MAX and given.isascii() and given.replace("-", "").replace("_", "").isalnum():
        return given
    return random_bytes(12).hex()


def _is_foreign(headers: Headers, host: str) -> bool:
    """Browsers say where a request comes from; programs say nothing, and are let through."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != host.lower()
