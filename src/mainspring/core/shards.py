"""Who owns which shard: rendezvous hashing over the live schedulers. Ownership only saves work."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from uuid import UUID

from mainspring.core.model import SHARDS


def shard_of(job_id: UUID) -> int:
    return job_id.int & 0xFF


@lru_cache(maxsize=64)
def owned_shards(member: UUID, members: tuple[UUID, ...]) -> tuple[int, ...]:
    """The shards of `member` among `members`; each shard has exactly one owner, whatever the order of members."""
    if member not in members:
        members = (*members, member)
    return tuple(shard for shard in range(SHARDS) if _owner(shard, members) == member)


def _owner(shard: int, members: Sequence[UUID]) -> UUID:
    return max(members, key=lambda member: (_weight(shard, member), member.int))


def _weight(shard: int, member: UUID) -> bytes:
    return hashlib.blake2b(member.bytes + bytes([shard]), digest_size=8).digest()
