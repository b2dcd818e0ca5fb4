"""Ids sort by time and by the order in which they were made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mainspring.client.identity import DerivedIds, IdMaker, parent_of_key
from mainspring.core.ids import instant_of_id
from mainspring.ports.clock import SystemClock

NOW = 1_800_000_000_000_000


@given(st.lists(st.tuples(st.integers(-3_000, 3_000), st.integers(1, 50)), min_size=1, max_size=20))
def test_ids_rise_even_where_time_stands_still_or_steps_back(steps: list[tuple[int, int]]) -> None:
    make = IdMaker(SystemClock())
    made = [identity for shift, count in steps for identity in make(NOW + shift, count)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(identity.version == 7 for identity in made)


def test_an_id_holds_its_millisecond() -> None:
    (made,) = IdMaker(SystemClock())(NOW + 1_999, 1)
    assert instant_of_id(made) == NOW + 1_000


def test_two_makers_in_one_millisecond_differ() -> None:
    first, second = IdMaker(SystemClock()), IdMaker(SystemClock())
    assert not set(first(NOW, 100)) & set(second(NOW, 100))


def test_forked_makers_go_different_ways() -> None:
    """A fork copies the state; the random step keeps the copies apart within the millisecond."""
    parent, child = IdMaker(SystemClock()), IdMaker(SystemClock())
    parent(NOW, 1)
    child._last, child._tail = parent._last, parent._tail
    assert not set(parent(NOW, 10)) & set(child(NOW, 10))


def test_derived_ids_are_agreed_on_by_all_tries() -> None:
    first = DerivedIds(parent_of_key("default", "k"), NOW)
    assert first(NOW, 3) == DerivedIds(parent_of_key("default", "k"), NOW)(NOW + 60_000_000, 3)
    assert len(set(first(NOW, 3))) == 3
    assert not set(first(NOW, 3)) & set(DerivedIds(parent_of_key("default", "other"), NOW)(NOW, 3))
    assert parent_of_key("a", "b\nc") != parent_of_key("a\nb", "d")
