"""Errors as problem details (RFC 9457): one shape for everything that can go wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mainspring.client.base import StillInFlight
from mainspring.core.errors import BacklogFull, CallerError, InvalidInput, KeyTaken, MainspringError, WorldError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1

_TITLES = {
    400: "The request cannot be read",
    403: "Not allowed",
    404: "Not found",
    405: "The method is not allowed here",
    408: "The request took too long",
    413: "The input is too large",
    415: "The media type is not supported",
    431: "The header is too large",
    500: "Something went wrong here",
    503: "Something outside does not answer as it should",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, before it is written."""

    status: int
    title: str
    detail: str
    kind: str = "about:blank"
    errors: tuple[Mapping[str, str], ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self, request_id: str) -> bytes:
        return msgspec.json.encode(
            {
                "type": self.kind,
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
                "errors": self.errors,
                "request_id": request_id,
                **self.more,
            }
        )


class Refused(CallerError):
    """A request that is refused before it reaches a handler."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        self.headers = dict(headers or {})
        super().__init__(detail)


def problem_of(error: MainspringError) -> Problem:
    """The problem that this error is to a caller."""
    if isinstance(error, Refused):
        return plain(error.status_code, str(error), error.headers)
    kind = f"urn:mainspring:{_kebab(type(error).__name__)}"
    errors: tuple[Mapping[str, str], ...] = ()
    more: dict[str, object] = {}
    headers: dict[str, str] = {}
    detail = str(error)
    if isinstance(error, InvalidInput):
        errors = tuple({"pointer": each.pointer, "detail": each.detail} for each in error.problems)
        detail = _summary(error)
    if isinstance(error, KeyTaken):
        more = {"id": error.holder, "key": error.key}
    if isinstance(error, BacklogFull):
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_seconds)))
    elif isinstance(error, WorldError | StillInFlight):
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return Problem(error.status, error.title, detail, kind, errors, more, headers)


def plain(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A problem of HTTP itself."""
    return Problem(status, _TITLES.get(status, "The request failed"), detail, headers=headers or {})


def _summary(error: InvalidInput) -> str:
    first = error.problems[0]
    where = f"{first.pointer}: " if first.pointer else ""
    rest = len(error.problems) - 1
    return f"{where}{first.detail}" + (f" (and {rest} more)" if rest else "")


def _kebab(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
