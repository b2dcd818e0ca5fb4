"""Ids for what is submitted: sorted by store time, and never the same twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from mainspring.core.ids import derived_id, uuid7
from mainspring.core.model import Instant
from mainspring.ports.clock import Clock

_TAIL_BITS = 62
_FIRST_TAIL_BITS = 61  # room to count upwards without running into the next bits
_STEP_BYTES = 4  # a random step, so that processes forked within one millisecond go different ways

Ids = Callable[[Instant, int], list[UUID]]


class IdMaker:
    """Makes ids that rise even within one millisecond, so that a batch and a burst keep their order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: Instant = 0
        self._tail = 0

    def __call__(self, now: Instant, count: int = 1) -> list[UUID]:
        millisecond = now - now % 1000
        if millisecond <= self._last:
            millisecond = self._last
            self._tail += 1 + int.from_bytes(self._clock.random_bytes(_STEP_BYTES), "big")
        else:
            self._tail = int.from_bytes(self._clock.random_bytes(10), "big") & ~(1 << _FIRST_TAIL_BITS)
        first = self._tail
        self._last, self._tail = millisecond, first + count
        return [uuid7(millisecond, (first + index).to_bytes(10, "big")) for index in range(count)]


@dataclass(frozen=True, slots=True)
class DerivedIds:
    """Ids that all tries of one request agree on: made of its Idempotency-Key and the instant of its reservation."""

    parent: UUID
    reserved_at: Instant

    def __call__(self, _now: Instant, count: int = 1) -> list[UUID]:
        return [derived_id(self.parent, str(index), self.reserved_at) for index in range(count)]


def parent_of_key(namespace: str, key: str) -> UUID:
    """What an Idempotency-Key is as an id."""
    return UUID(bytes=hashlib.blake2b(f"{namespace}\n{key}".encode(), digest_size=16).digest())
