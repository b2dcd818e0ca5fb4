"""The table of states, edge by edge; what is not in it is refused."""

from __future__ import annotations

from itertools import product

import pytest

from mainspring.core.states import LIVE, TRANSITIONS, Event, ForbiddenTransition, State, after

ENDS = [State.COMPLETED, State.FAILED, State.CANCELLED, State.SKIPPED]


@pytest.mark.parametrize(("state", "event"), sorted(product(State, Event)))
def test_every_pair_is_an_edge_of_the_table_or_refused(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert after(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(ForbiddenTransition) as refusal:
            after(state, event)
        assert (refusal.value.state, refusal.value.event) == (state, event)


@pytest.mark.parametrize("end", ENDS)
def test_ends_absorb(end: State) -> None:
    """B10."""
    assert end.ended
    assert not [event for state, event in TRANSITIONS if state is end]


def test_every_state_but_the_ends_can_be_cancelled_when_it_has_not_ended() -> None:
    for state in LIVE:
        assert after(state, Event.CANCEL) is State.CANCELLED


def test_nothing_starts_but_what_was_queued_or_parked() -> None:
    assert {state for (state, _), target in TRANSITIONS.items() if target is State.RUNNING} == {
        State.QUEUED,
        State.PARKED,
    }


def test_only_what_never_started_is_skipped() -> None:
    sources = {state for (state, _), target in TRANSITIONS.items() if target is State.SKIPPED}
    assert sources == {State.QUEUED, State.HELD}


def test_every_state_is_reached_and_every_live_one_can_end() -> None:
    reached = {State.QUEUED, State.HELD}
    for _ in State:
        reached |= {target for (source, _), target in TRANSITIONS.items() if source in reached}
    assert reached == set(State)
    ending = set(ENDS)
    for _ in State:
        ending |= {source for (source, _), target in TRANSITIONS.items() if target in ending}
    assert ending == set(State)


def test_the_stored_numbers_are_what_they_always_were() -> None:
    assert {state.name: int(state) for state in State} == {
        "QUEUED": 0,
        "RUNNING": 1,
        "HELD": 2,
        "RETRYING": 3,
        "PARKED": 4,
        "UNKNOWN": 5,
        "COMPLETED": 10,
        "FAILED": 11,
        "CANCELLED": 12,
        "SKIPPED": 13,
    }


def test_users_see_parked_as_running_and_all_others_by_name() -> None:
    assert State.PARKED.word == "running"
    assert [state.word for state in State if state is not State.PARKED] == [
        state.name.lower() for state in State if state is not State.PARKED
    ]


def test_live_are_the_states_that_have_not_ended() -> None:
    assert set(State) - LIVE == set(ENDS)
