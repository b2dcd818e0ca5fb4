"""Options of a decorator or of `task.options(…)`, turned into fields of the API; unknown ones are refused."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from mainspring.core.errors import InvalidInput
from mainspring.core.fields import Problems
from mainspring.core.model import DEFAULT_PRIORITY
from mainspring.core.policy import read_policy
from mainspring.core.submission import NOT_OFFERED, refuse_not_offered
from mainspring.core.times import read_duration, read_instant, utc_text
from mainspring.tasks.retry import Retry

TASK_OPTIONS = frozenset(
    {
        "after", "breaker", "calendar", "cancel_grace", "description", "dst", "expires_in", "fair", "jitter",
        "limits", "lost_after", "max_runs", "metadata", "misfire", "on_lost", "overlap", "priority",
        "queue", "region", "resources", "retry", "spread", "tags", "timeout", "timezone", "unique",
    }
)  # fmt: skip
JOB_OPTIONS = TASK_OPTIONS | {
    "at", "cron", "delay", "end_at", "every", "key", "name", "rrule", "start_at"
}  # fmt: skip
_DURATIONS = ("timeout", "cancel_grace", "delay", "every", "expires_in", "jitter", "lost_after", "spread")
_INSTANTS = ("at", "start_at", "end_at")


def read_options(options: Mapping[str, object], known: Collection[str], *, of: str) -> dict[str, object]:
    """The options as JSON values under the API's names; raises InvalidInput that names each wrong one and the cure."""
    problems = Problems()
    for name, value in options.items():
        if name in NOT_OFFERED:
            refuse_not_offered(name, value, problems)
        elif name not in known:
            problems.add(f"/{name}", _unknown(name, known, of))
    problems.raise_if_any()
    document = {name: _plain(name, value) for name, value in options.items()}
    _check(document)
    return document


def _unknown(name: str, known: Collection[str], of: str) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(sorted(known))
    return f"{of} takes no {name!r}; {hint}"


def _plain(name: str, value: object) -> object:
    if isinstance(value, Retry):
        return value.document()
    if name == "misfire" and isinstance(value, str):
        return {"policy": value}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return utc_text(read_instant(value, f"/{name}"))
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{name}/{key}", each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(f"{name}/{index}", each) for index, each in enumerate(value)]
    return value


def _check(document: Mapping[str, object]) -> None:
    for name in _DURATIONS:
        if document.get(name) is not None:
            read_duration(document[name], f"/{name}")
    for name in _INSTANTS:
        if document.get(name) is not None:
            read_instant(document[name], f"/{name}")
    priority = document.get("priority", DEFAULT_PRIORITY)
    if isinstance(priority, bool) or not isinstance(priority, int) or not 0 <= priority <= 100:
        raise InvalidInput.at("/priority", "must be a whole number from 0 to 100; higher goes first")
    queue = document.get("queue", "default")
    if not isinstance(queue, str) or not queue:
        raise InvalidInput.at("/queue", "must be the name of a queue")
    try:
        read_policy(document)
    except ValueError as error:
        raise InvalidInput.at("/on_lost" if "OnLost" in str(error) else "/overlap", f"{error}; see the API") from None
