"""Ids are UUIDs of version 7: their first 48 bits are milliseconds, so they sort by time and find their partition."""

from __future__ import annotations

import hashlib
from uuid import UUID

_VERSION_AND_VARIANT_MASK = ~((0xF << 76) | (0x3 << 62))
_VERSION_AND_VARIANT = (0x7 << 76) | (0x2 << 62)


def uuid7(instant: int, random_bytes: bytes) -> UUID:
    """An id for this instant (microseconds); `random_bytes` are ten bytes from the submitter."""
    return _assemble(instant, int.from_bytes(random_bytes[:10], "big"))


def occurrence_id(job_id: UUID, nominal: int) -> UUID:
    """The one id that the scheduled run of (job, nominal) can have, whoever fires it."""
    digest = hashlib.blake2b(job_id.bytes + nominal.to_bytes(8, "big", signed=True), digest_size=10).digest()
    return _assemble(nominal, int.from_bytes(digest, "big"))


def derived_id(parent: UUID, purpose: str, instant: int) -> UUID:
    """An id that repeats of one request agree on: the same parent, purpose and instant give the same id."""
    digest = hashlib.blake2b(parent.bytes + purpose.encode(), digest_size=10).digest()
    return _assemble(instant, int.from_bytes(digest, "big"))


def instant_of_id(identity: UUID) -> int:
    """The instant (microseconds, whole milliseconds) that the id was made for."""
    return (identity.int >> 80) * 1000


def _assemble(instant: int, random_bits: int) -> UUID:
    milliseconds = max(0, instant // 1000) & 0xFFFF_FFFF_FFFF
    value = (milliseconds << 80) | random_bits
    return UUID(int=(value & _VERSION_AND_VARIANT_MASK) | _VERSION_AND_VARIANT)
