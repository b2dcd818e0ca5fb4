from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.model import SHARDS
from mainspring.core.shards import owned_shards, shard_of

MEMBERS = st.lists(st.uuids(), min_size=1, max_size=6, unique=True)


@given(MEMBERS)
def test_each_shard_has_exactly_one_owner(members: list[UUID]) -> None:
    everybody = tuple(sorted(members))
    owned = [shard for member in everybody for shard in owned_shards(member, everybody)]
    assert sorted(owned) == list(range(SHARDS))


@given(MEMBERS)
def test_who_leaves_gives_shards_away_and_nobody_else_does(members: list[UUID]) -> None:
    everybody = tuple(sorted(members))
    rest = everybody[1:]
    for member in rest:
        assert set(owned_shards(member, everybody)) <= set(owned_shards(member, rest))


def test_a_member_that_is_not_listed_yet_counts_itself() -> None:
    assert owned_shards(UUID(int=1), (UUID(int=2),)) != ()


def test_the_shard_is_the_last_byte_of_the_id() -> None:
    assert shard_of(UUID(int=0x1234)) == 0x34
