"""Overlap: the whole table of rule, live and held runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.overlap import QUEUE_ALL_MAX, OverlapVerdict, decide_overlap
from mainspring.core.policy import Overlap

START, SKIP, HOLD, REPLACE = (
    OverlapVerdict.START,
    OverlapVerdict.SKIP,
    OverlapVerdict.HOLD,
    OverlapVerdict.REPLACE,
)


@pytest.mark.parametrize("rule", list(Overlap))
@pytest.mark.parametrize("catch_up", [False, True])
def test_with_nothing_live_it_starts(rule: Overlap, catch_up: bool) -> None:
    assert decide_overlap(rule, live=0, held=0, catch_up=catch_up) is START


@pytest.mark.parametrize(
    ("rule", "live", "held", "verdict"),
    [
        (Overlap.SKIP, 1, 0, SKIP),
        (Overlap.SKIP, 2, 1, SKIP),
        (Overlap.QUEUE_ONE, 1, 0, HOLD),
        (Overlap.QUEUE_ONE, 2, 1, SKIP),
        (Overlap.QUEUE_ALL, 2, 1, HOLD),
        (Overlap.QUEUE_ALL, QUEUE_ALL_MAX, QUEUE_ALL_MAX - 1, HOLD),
        (Overlap.QUEUE_ALL, QUEUE_ALL_MAX + 1, QUEUE_ALL_MAX, SKIP),
        (Overlap.CANCEL, 1, 0, REPLACE),
        (Overlap.CANCEL, 3, 2, REPLACE),
        (Overlap.ALLOW, 100, 0, START),
    ],
)
def test_with_live_runs_the_rule_decides(rule: Overlap, live: int, held: int, verdict: OverlapVerdict) -> None:
    assert decide_overlap(rule, live=live, held=held) is verdict


@pytest.mark.parametrize("rule", [rule for rule in Overlap if rule is not Overlap.ALLOW])
def test_runs_of_a_catch_up_follow_one_another(rule: Overlap) -> None:
    assert decide_overlap(rule, live=1, held=0, catch_up=True) is HOLD
    assert decide_overlap(rule, live=9, held=8, catch_up=True) is HOLD
    assert decide_overlap(rule, live=QUEUE_ALL_MAX + 1, held=QUEUE_ALL_MAX, catch_up=True) is SKIP


def test_a_catch_up_that_allows_overlap_starts_all() -> None:
    assert decide_overlap(Overlap.ALLOW, live=9, held=0, catch_up=True) is START


@given(st.sampled_from(Overlap), st.integers(1, 5000), st.integers(0, 5000), st.booleans())
def test_beside_a_live_run_nothing_starts_unless_allowed(rule: Overlap, live: int, held: int, catch_up: bool) -> None:
    """E2."""
    verdict = decide_overlap(rule, live=live, held=min(held, live), catch_up=catch_up)
    assert (verdict is START) == (rule is Overlap.ALLOW)
