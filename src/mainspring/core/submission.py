"""What a caller asks for, read once and whole: every field checked, everything wrong said at once.

Python, command line and HTTP all submit through here. What a submission leaves out comes from the task's decorator;
what that leaves out too is not stored: `DEFAULTS` fills it in for readers, `core.policy` and `core.schedule` for runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from mainspring.core import fields
from mainspring.core.errors import InvalidInput, TooLarge
from mainspring.core.fields import Problems, Reader
from mainspring.core.model import DEFAULT_PRIORITY, DEFAULT_QUEUE, Duration, Instant, Kind
from mainspring.core.retry import RetryPolicy
from mainspring.core.schedule import Schedule, read_schedule
from mainspring.core.times import read_duration, read_instant
from mainspring.core.zone import read_zone

WHAT = ("task", "http", "command")
WHEN = ("at", "delay", "cron", "every", "rrule")
RECURRING = ("cron", "every", "rrule")
COLUMNS = ("task", "payload", "queue", "priority", "key")
MERGED = ("retry", "misfire", "dst")
DOCUMENT_BYTES_MAX = 64 * 1024

# Fields of the surface whose machinery this server does not have yet. Whoever builds one deletes its line.
NOT_OFFERED = MappingProxyType(
    {
        "http": "webhook runs",
        "command": "command runs",
        "after": "jobs that wait for others",
        "limits": "limits",
        "unique": "unique jobs; `key` makes a job unique in its namespace",
        "fair": "fairness keys",
        "breaker": "circuit breakers",
        "resources": "resource limits",
        "region": "regions",
    }
)

_RETRY = RetryPolicy()

# What readers see where neither the submission nor the decorator says anything.
DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "task": None,
        "http": None,
        "command": None,
        "name": None,
        "description": None,
        "key": None,
        "payload": {},
        "queue": DEFAULT_QUEUE,
        "priority": DEFAULT_PRIORITY,
        "at": None,
        "delay": None,
        "cron": None,
        "dialect": None,
        "every_nth": None,
        "timezone": "UTC",
        "every": None,
        "rrule": None,
        "dst": {"gap": "after", "fold": "first"},
        "calendar": None,
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "jitter": "0s",
        "spread": None,
        "misfire": {"policy": "once", "window": None, "limit": 100},
        "overlap": "skip",
        "timeout": "1h",
        "cancel_grace": "10s",
        "retry": {
            "max_attempts": _RETRY.max_attempts,
            "backoff": _RETRY.backoff.value,
            "initial": "2s",
            "factor": 2,
            "max": "1h",
            "jitter": _RETRY.jitter,
        },
        "on_lost": "retry",
        "lost_after": None,
        "expires_in": None,
        "resources": None,
        "after": (),
        "limits": (),
        "unique": None,
        "fair": None,
        "breaker": None,
        "region": None,
        "tags": (),
        "metadata": {},
    }
)

_READERS: dict[str, Reader] = {
    "task": fields.identifier,
    "name": fields.label,
    "description": fields.description,
    "key": fields.identifier,
    "queue": fields.identifier,
    "priority": fields.whole(0, 100, "; higher goes first"),
    "at": fields.instant,
    "delay": fields.span,
    "cron": fields.expressions,
    "dialect": fields.label,
    "every_nth": fields.whole(1, 1000),
    "rrule": fields.description,
    "calendar": fields.calendar,
    "timezone": lambda value, pointer: read_zone(value, pointer).name,
    "every": fields.positive_span,
    "dst": fields.dst,
    "start_at": fields.instant,
    "end_at": fields.instant,
    "max_runs": fields.whole(1, 2**53),
    "jitter": fields.span,
    "spread": fields.span,
    "misfire": fields.misfire,
    "overlap": fields.choice("skip", "queue_one", "queue_all", "cancel", "allow"),
    "timeout": fields.positive_span,
    "cancel_grace": fields.span,
    "retry": fields.retry,
    "on_lost": fields.choice("retry", "fail", "hold"),
    "lost_after": fields.positive_span,
    "expires_in": fields.positive_span,
    "tags": fields.text_list,
    "metadata": fields.metadata,
}

# Null says "as if left out" here; elsewhere it is a wrong type.
NULLABLE = frozenset(name for name, value in DEFAULTS.items() if value is None) | frozenset(NOT_OFFERED)
_RECURRING_ONLY = (
    "dst", "calendar", "dialect", "every_nth", "start_at", "end_at", "max_runs", "jitter", "spread", "misfire",
)  # fmt: skip
_NEVER_BY_DECORATOR = (*WHEN, "task", "payload", "key", "http", "command")


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked request. `document` is what is stored beside the columns; `schedule` is None for jobs that run now."""

    task: str
    payload: bytes
    queue: str
    priority: int
    key: str | None
    document: Mapping[str, object]
    kind: Kind
    at: Instant | None
    delay: Duration | None
    expires_in: Duration | None
    schedule: Schedule | None

    @property
    def text(self) -> str | None:
        return fields.encode_document(self.document)


def read_submission(
    value: object,
    defaults: Mapping[str, object] | None = None,
    *,
    encoded_payload: bytes | None = None,
    job_id: UUID | None = None,
) -> Submission:
    """Reads a job as api.md draws it; `defaults` are the fields that the task's decorator sets.

    `encoded_payload` stands for the payload where the caller has encoded the arguments already.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput.at("", "must be an object with the fields of a job")
    problems = Problems()
    kept = _read_fields(_with_defaults(value, defaults) if defaults else value, problems)
    payload = _payload(value, problems) if encoded_payload is None else encoded_payload
    _check_what(value, problems)
    recurring = any(name in kept for name in RECURRING)
    if not recurring:
        _refuse_recurring_only(kept, value, problems)
    schedule = _schedule(kept, value, problems, job_id)
    problems.raise_if_any()
    return _assemble(kept, payload, schedule, recurring=recurring)


def document_of(value: Mapping[str, object]) -> dict[str, object]:
    """The part of a checked job that is stored as its document."""
    return {name: each for name, each in value.items() if name not in COLUMNS}


def _with_defaults(value: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, object]:
    recurring = any(value.get(name) is not None for name in RECURRING)
    unwanted = _NEVER_BY_DECORATOR if recurring else (*_NEVER_BY_DECORATOR, *_RECURRING_ONLY)
    merged = {
        name: each
        for name, each in defaults.items()
        if (name in _READERS or name in NOT_OFFERED) and name not in unwanted
    }
    for name, each in value.items():
        default = merged.get(name)
        if name in MERGED and isinstance(default, Mapping) and isinstance(each, Mapping):
            merged[name] = {**default, **each}
        else:
            merged[name] = each
    return merged


def refuse_not_offered(name: str, value: object, problems: Problems) -> None:
    """For a field of NOT_OFFERED: only what says nothing is taken."""
    if value is not None and (DEFAULTS[name] != () or value not in ([], ())):
        problems.add(f"/{name}", f"this server does not offer {NOT_OFFERED[name]} yet")


def _read_fields(value: Mapping[str, object], problems: Problems) -> dict[str, object]:
    kept: dict[str, object] = {}
    unknown: list[object] = []
    for name, each in value.items():
        reader = _READERS.get(name)
        if reader is None:
            if name in NOT_OFFERED:
                refuse_not_offered(name, each, problems)
            elif name != "payload":
                unknown.append(name)
        elif each is None and (name in NULLABLE or name == "timeout"):
            if name == "timeout":
                kept[name] = None
        else:
            try:
                kept[name] = reader(each, f"/{name}")
            except InvalidInput as error:
                problems.take(error)
    if unknown:
        fields.refuse_unknown(unknown, tuple(DEFAULTS), "", problems)
    return kept


def _payload(value: Mapping[str, object], problems: Problems) -> bytes:
    if "payload" not in value:
        return b"{}"
    try:
        return fields.encode_payload(value["payload"])
    except InvalidInput as error:
        problems.take(error)
        return b""


def _check_what(value: Mapping[str, object], problems: Problems) -> None:
    named = [name for name in WHAT if value.get(name) is not None]
    if len(named) > 1:
        problems.add(f"/{named[1]}", f"exactly one of {', '.join(WHAT)} says what; found {' and '.join(named)}")
    elif not named:
        problems.add("/task", f"exactly one of {', '.join(WHAT)} says what; none was given")


def _refuse_recurring_only(kept: dict[str, object], value: Mapping[str, object], problems: Problems) -> None:
    for name in _RECURRING_ONLY:
        if name in kept and kept.pop(name) != DEFAULTS[name] and value.get(name) is not None:
            problems.add(f"/{name}", "has a meaning for recurring jobs only; add cron, every or rrule, or leave it out")


def _schedule(
    kept: dict[str, object], value: Mapping[str, object], problems: Problems, job_id: UUID | None
) -> Schedule | None:
    named = [name for name in WHEN if value.get(name) is not None]
    if len(named) > 1:
        problems.add(f"/{named[1]}", f"at most one of {', '.join(WHEN)} says when; found {' and '.join(named)}")
        return None
    if not named or named[0] not in kept:
        return None
    try:
        return read_schedule(kept, job_id=job_id)
    except InvalidInput as error:
        problems.take(error)
        return None


def _assemble(kept: dict[str, object], payload: bytes, schedule: Schedule | None, *, recurring: bool) -> Submission:
    task, key = kept["task"], kept.get("key")
    queue, priority = kept.get("queue", DEFAULT_QUEUE), kept.get("priority", DEFAULT_PRIORITY)
    assert isinstance(task, str)
    assert isinstance(queue, str)
    assert isinstance(priority, int)
    document = document_of(kept)
    text = fields.encode_document(document) if document else None
    if text is not None and len(text) > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"the fields beside the payload take {len(text)} characters; at most 64 KiB are kept")
    at, delay, expires_in = kept.get("at"), kept.get("delay"), kept.get("expires_in")
    once = at is not None or delay is not None
    return Submission(
        task=task,
        payload=payload,
        queue=queue,
        priority=priority,
        key=key if isinstance(key, str) else None,
        document=document,
        kind=Kind.RECURRING if recurring else Kind.DELAYED if once else Kind.IMMEDIATE,
        at=None if at is None else read_instant(at, "/at"),
        delay=None if delay is None else read_duration(delay, "/delay"),
        expires_in=None if expires_in is None else read_duration(expires_in, "/expires_in"),
        schedule=schedule,
    )
