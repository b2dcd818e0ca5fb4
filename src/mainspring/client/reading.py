"""Filters, bounds and cursors of lists, read from what a caller wrote."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from mainspring.client.views import Json
from mainspring.core.errors import InvalidInput, NotFound
from mainspring.core.fields import Problems, identifier, label, nearest, refuse_unknown
from mainspring.core.model import DAY, DEFAULT_NAMESPACE, Instant, JobFilter, Kind, RunFilter
from mainspring.core.states import State
from mainspring.core.times import read_instant

LIMIT_DEFAULT = 50
LIMIT_MAX = 1000

RUN_STATUSES = tuple(dict.fromkeys(state.word for state in State))
JOB_STATUSES = (*RUN_STATUSES, "scheduled", "waiting", "active", "paused", "finished")
KINDS = tuple(kind.word for kind in Kind)
JOB_FILTERS = (
    "status", "kind", "task", "queue", "tag", "key", "q", "region", "created_by",
    "created_after", "created_before", "next_before",
)  # fmt: skip
RUN_FILTERS = ("status", "job_id", "task", "queue", "worker", "tag", "from", "to", "error", "reason")
PAYLOAD_PREFIX = "payload."

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_NAME_CURSOR = re.compile(r"[A-Za-z0-9_-]{1,1500}", re.ASCII)
_CURSOR = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Page:
    """How much of a list is asked for, and after what."""

    limit: int = LIMIT_DEFAULT
    after: UUID | None = None


def read_id(text: str, what: str) -> UUID:
    """The id in an address; what is no id is the id of nothing."""
    if not _UUID.fullmatch(text):
        raise NotFound(f"there is no {what} {text[:64]!r}")
    return UUID(text)


def read_page(given: Mapping[str, object], kind: str, *, default: int = LIMIT_DEFAULT) -> Page:
    """`limit` and `cursor` of the list of this kind."""
    problems = Problems()
    limit = _try(problems, read_limit, given.get("limit"), default)
    cursor = given.get("cursor")
    after = None if cursor is None else _try(problems, lambda value, _: read_cursor(value, kind), cursor, None)
    problems.raise_if_any()
    return Page(limit, after)


def read_limit(value: object, pointer: str = "/limit", most: int = LIMIT_MAX) -> int:
    number = int(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise InvalidInput.at(pointer, f"must be a whole number from 1 to {most}")
    return number


def write_cursor(kind: str, identity: UUID) -> str:
    """An opaque text that names where the list of this kind goes on."""
    return base64.urlsafe_b64encode(identity.bytes + _check(kind, identity)).decode().rstrip("=")


def read_cursor(value: object, kind: str) -> UUID:
    if isinstance(value, str) and _CURSOR.fullmatch(value):
        try:
            raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except binascii.Error:
            raw = b""
        identity = UUID(bytes=raw[:16]) if len(raw) == 21 else None
        if identity is not None and raw[16:] == _check(kind, identity):
            return identity
    raise InvalidInput.at("/cursor", "is no cursor of this list; take `next` of an earlier answer")


def _check(kind: str, identity: UUID) -> bytes:
    return hashlib.blake2b(identity.bytes, digest_size=5, person=kind.encode()[:16]).digest()


def page_of(items: Sequence[Json], name: str, given: Mapping[str, object], kind: str) -> Json:
    """A page of a small list that is read whole, in the order of the member `name`."""
    unknown = [each for each in given if each not in ("limit", "cursor")]
    problems = Problems()
    refuse_unknown(unknown, ("limit", "cursor"), "", problems)
    limit = _try(problems, read_limit, given.get("limit"), LIMIT_MAX)
    cursor = given.get("cursor")
    after = "" if cursor is None else _try(problems, lambda value, _: _read_name_cursor(value, kind), cursor, "")
    problems.raise_if_any()
    rest = sorted((item for item in items if str(item[name]) > after), key=lambda item: str(item[name]))
    shown = rest[:limit]
    more = len(rest) > limit
    return {"items": shown, "next": _write_name_cursor(kind, str(shown[-1][name])) if more else None}


def _write_name_cursor(kind: str, name: str) -> str:
    raw = name.encode()
    return base64.urlsafe_b64encode(_name_check(kind, raw) + raw).decode().rstrip("=")


def _read_name_cursor(value: object, kind: str) -> str:
    if isinstance(value, str) and _NAME_CURSOR.fullmatch(value):
        try:
            raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
            if raw[:5] == _name_check(kind, raw[5:]):
                return raw[5:].decode()
        except ValueError:
            pass
    raise InvalidInput.at("/cursor", "is no cursor of this list; take `next` of an earlier answer")


def _name_check(kind: str, raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=5, person=kind.encode()[:16]).digest()


def read_job_filter(given: Mapping[str, object], now: Instant, *, namespace: str = DEFAULT_NAMESPACE) -> JobFilter:
    """Completed one-time jobs are left out after a day, unless a filter names a time or a key."""
    reader = _Reader(given, JOB_FILTERS)
    kind = reader.words("kind", KINDS)
    dated = any(given.get(name) is not None for name in ("key", "created_after", "created_before", "next_before"))
    found = JobFilter(
        namespace=namespace,
        status=reader.words("status", JOB_STATUSES),
        kind=Kind[kind[0].upper()] if kind else None,
        task=reader.text("task"),
        queue=reader.text("queue"),
        tag=reader.text("tag"),
        key=reader.text("key"),
        prefix=reader.text("q"),
        region=reader.text("region"),
        created_by=reader.text("created_by"),
        created_after=reader.instant("created_after"),
        created_before=reader.instant("created_before"),
        next_before=reader.instant("next_before"),
        payload=reader.payload(),
        ended_since=None if dated else now - DAY,
    )
    if len(kind) > 1:
        reader.problems.add("/kind", "takes one word")
    reader.problems.raise_if_any()
    return found


def read_run_filter(
    given: Mapping[str, object], *, after: UUID | None = None, namespace: str = DEFAULT_NAMESPACE
) -> RunFilter:
    reader = _Reader(given, RUN_FILTERS)
    found = RunFilter(
        namespace=namespace,
        status=reader.words("status", RUN_STATUSES),
        job_id=reader.id("job_id"),
        task=reader.text("task"),
        queue=reader.text("queue"),
        worker=reader.id("worker"),
        tag=reader.text("tag"),
        reason=reader.text("reason"),
        error=reader.text("error"),
        start=reader.instant("from"),
        end=reader.instant("to"),
        after_id=after,
    )
    reader.problems.raise_if_any()
    return found


class _Reader:
    """Reads filters one by one and notes all that is wrong; `limit` and `cursor` are read elsewhere."""

    def __init__(self, given: Mapping[str, object], known: Collection[str]) -> None:
        self.given = given
        self.problems = Problems()
        for name in given:
            paths = "q" in known and name.startswith(PAYLOAD_PREFIX)
            if name not in known and name not in ("limit", "cursor") and not paths:
                self.problems.add(f"/{name}", f"is no filter here{nearest(name, known)}")

    def text(self, name: str) -> str | None:
        value = self.given.get(name)
        return None if value is None else _try(self.problems, label, value, None, name)

    def id(self, name: str) -> UUID | None:
        value = self.given.get(name)
        return None if value is None else _try(self.problems, _read_uuid, value, None, name)

    def instant(self, name: str) -> Instant | None:
        value = self.given.get(name)
        return None if value is None else _try(self.problems, read_instant, value, None, name)

    def words(self, name: str, known: Sequence[str]) -> tuple[str, ...]:
        """One word, several with commas between them, or a list."""
        value = self.given.get(name)
        if value is None:
            return ()
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            self.problems.add(f"/{name}", f"must be one of {', '.join(known)}")
            return ()
        words = tuple(part for each in parts if isinstance(each, str) for part in each.split(","))
        for word in words:
            if word not in known:
                self.problems.add(f"/{name}", f"must be one of {', '.join(known)}{nearest(word, known)}")
        return tuple(word for word in dict.fromkeys(words) if word in known)

    def payload(self) -> tuple[tuple[str, str], ...]:
        found = []
        for name, value in self.given.items():
            if name.startswith(PAYLOAD_PREFIX):
                field = _try(self.problems, identifier, name.removeprefix(PAYLOAD_PREFIX), "", name)
                text = _try(self.problems, label, value, "", name)
                found.append((field, text))
        return tuple(found)


def _read_uuid(value: object, pointer: str) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and _UUID.fullmatch(value):
        return UUID(value)
    raise InvalidInput.at(pointer, "must be an id, such as 01890a5d-ac96-774b-bcce-b302099a8057")


def _try(
    problems: Problems,
    read: Callable[[object, str], _Read],
    value: object,
    default: _Read,
    name: str = "limit",
) -> _Read:
    if value is None:
        return default
    try:
        return read(value, f"/{name}")
    except InvalidInput as error:
        problems.take(error)
        return default
