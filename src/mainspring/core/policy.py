"""What a job's document says about its runs, read once per distinct text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from mainspring.core.model import HOUR, SECOND, Duration
from mainspring.core.retry import RetryPolicy, read_retry
from mainspring.core.times import read_duration


class OnLost(StrEnum):
    RETRY = "retry"
    FAIL = "fail"
    HOLD = "hold"


class Overlap(StrEnum):
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    CANCEL = "cancel"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """How a run is to be carried out and what becomes of its failures."""

    timeout: Duration | None = HOUR
    cancel_grace: Duration = 10 * SECOND
    retry: RetryPolicy = RetryPolicy()
    on_lost: OnLost = OnLost.RETRY
    lost_after: Duration | None = None
    expires_in: Duration | None = None
    overlap: Overlap = Overlap.SKIP


DEFAULT_POLICY = RunPolicy()


@lru_cache(maxsize=4096)
def policy_of(document: str | None) -> RunPolicy:
    """The policy in a stored document; None is all defaults."""
    return read_policy(json.loads(document)) if document else DEFAULT_POLICY


def read_policy(document: Mapping[str, object]) -> RunPolicy:
    """Reads the fields of api.md; raises InvalidInput naming the one that is wrong."""
    return RunPolicy(
        timeout=_span(document, "timeout", HOUR),
        cancel_grace=_span(document, "cancel_grace", 10 * SECOND) or 0,
        retry=read_retry(document.get("retry")),
        on_lost=OnLost(str(document.get("on_lost") or OnLost.RETRY)),
        lost_after=_span(document, "lost_after", None),
        expires_in=_span(document, "expires_in", None),
        overlap=Overlap(str(document.get("overlap") or Overlap.SKIP)),
    )


def _span(document: Mapping[str, object], name: str, default: Duration | None) -> Duration | None:
    if name not in document:
        return default
    value = document[name]
    return None if value is None else read_duration(value, f"/{name}")
