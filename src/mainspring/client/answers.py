"""Problem documents turned back into the errors they tell of."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import msgspec

from mainspring.core.errors import (
    BacklogFull,
    CallerError,
    Conflict,
    InvalidInput,
    KeyTaken,
    MainspringError,
    NotAllowed,
    NotFound,
    Problem,
    StaleVersion,
    StoreRefuses,
    StoreUnavailable,
    TooLarge,
)

_BY_STATUS: dict[int, type[CallerError]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    412: StaleVersion,
    413: TooLarge,
}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> MainspringError:
    """The error behind an answer that is none of success."""
    told = _document(body)
    detail = str(told.get("detail") or f"the server answered {status}")
    if status == 422:
        return InvalidInput(_problems(told) or [Problem("", detail)])
    if status == 429:
        return BacklogFull(detail, _seconds(headers.get("retry-after")))
    if status in (502, 503, 504):
        refuses = str(told.get("type", "")).endswith("store-refuses")
        return StoreRefuses(detail) if refuses else StoreUnavailable(detail, unknown_outcome=True)
    if status == 409 and _is_id(told.get("id")):
        return KeyTaken(str(told.get("key", "")), str(told["id"]))
    if status in _BY_STATUS:
        return _BY_STATUS[status](detail)
    return CallerError(detail) if 400 <= status < 500 else MainspringError(detail)


def _document(body: bytes) -> Mapping[str, object]:
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _problems(told: Mapping[str, object]) -> list[Problem]:
    errors = told.get("errors")
    if not isinstance(errors, list):
        return []
    return [
        Problem(str(each.get("pointer", "")), str(each.get("detail", ""))) for each in errors if isinstance(each, dict)
    ]


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else 1.0


def _is_id(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False
