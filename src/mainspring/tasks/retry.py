"""The public way to say how failures are tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring.core.retry import read_retry

Span = float | str | timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What is left out keeps its default: 3 attempts, exponential, 2s doubling up to 1h, jitter 0.1."""

    max_attempts: int | None = None
    backoff: str | None = None
    initial: Span | None = None
    factor: float | None = None
    max: Span | None = None
    jitter: float | None = None

    def __post_init__(self) -> None:
        read_retry(self.document())

    def document(self) -> dict[str, object]:
        """The `retry` object of the API with the fields that were given."""
        given = {
            "max_attempts": self.max_attempts,
            "backoff": self.backoff,
            "initial": _plain(self.initial),
            "factor": self.factor,
            "max": _plain(self.max),
            "jitter": self.jitter,
        }
        return {name: value for name, value in given.items() if value is not None}


def _plain(span: Span | None) -> float | str | None:
    return span.total_seconds() if isinstance(span, timedelta) else span
