"""Backoff: within its bounds at any attempt, also at the cap; and read from what users write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.errors import InvalidInput
from mainspring.core.model import HOUR, MINUTE, SECOND
from mainspring.core.retry import Backoff, RetryPolicy, read_retry

POLICIES = st.builds(
    RetryPolicy,
    backoff=st.sampled_from(Backoff),
    initial=st.integers(0, HOUR),
    factor=st.floats(1, 1000),
    maximum=st.integers(0, 24 * HOUR),
    jitter=st.floats(0, 1),
)
CHANCES = st.floats(min_value=0, max_value=1, exclude_max=True)
FAILURES = st.integers(1, 1000)


def waits(policy: RetryPolicy, count: int = 5) -> list[int]:
    return [policy.wait(number, 0.5) for number in range(1, count + 1)]


def test_exponential_doubles_up_to_its_maximum() -> None:
    policy = RetryPolicy(initial=2 * SECOND, maximum=10 * SECOND, jitter=0)
    assert waits(policy) == [2 * SECOND, 4 * SECOND, 8 * SECOND, 10 * SECOND, 10 * SECOND]


def test_linear_grows_by_the_same_step() -> None:
    policy = RetryPolicy(backoff=Backoff.LINEAR, initial=3 * SECOND, jitter=0)
    assert waits(policy, 3) == [3 * SECOND, 6 * SECOND, 9 * SECOND]


def test_fixed_stays() -> None:
    assert waits(RetryPolicy(backoff=Backoff.FIXED, initial=MINUTE, jitter=0), 3) == [MINUTE] * 3


def test_jitter_reaches_both_its_bounds() -> None:
    policy = RetryPolicy(backoff=Backoff.FIXED, initial=10 * SECOND, jitter=0.1)
    assert policy.wait(1, 0.0) == 9 * SECOND
    assert policy.wait(1, 0.9999999) in range(11 * SECOND - 2, 11 * SECOND + 1)


@given(POLICIES, FAILURES, CHANCES)
def test_the_wait_never_passes_the_maximum_nor_its_share_of_jitter(
    policy: RetryPolicy, failures: int, chance: float
) -> None:
    """C1: also at the cap."""
    plain = RetryPolicy(policy.max_attempts, policy.backoff, policy.initial, policy.factor, policy.maximum, 0.0)
    middle = plain.wait(failures, 0.5)
    wait = policy.wait(failures, chance)
    assert 0 <= wait <= policy.maximum
    assert middle * (1 - policy.jitter) - 1 <= wait <= middle * (1 + policy.jitter) + 1


@given(POLICIES, FAILURES, CHANCES, CHANCES)
def test_more_chance_is_never_less_wait(policy: RetryPolicy, failures: int, one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert policy.wait(failures, low) <= policy.wait(failures, high)


@given(POLICIES, FAILURES)
def test_the_next_wait_is_never_shorter_before_jitter(policy: RetryPolicy, failures: int) -> None:
    plain = RetryPolicy(policy.max_attempts, policy.backoff, policy.initial, policy.factor, policy.maximum, 0.0)
    assert plain.wait(failures, 0.5) <= plain.wait(failures + 1, 0.5)


def test_nothing_given_is_the_promised_default() -> None:
    policy = read_retry(None)
    assert policy == RetryPolicy(3, Backoff.EXPONENTIAL, 2 * SECOND, 2.0, HOUR, 0.1)
    assert read_retry({}) == policy
    assert read_retry(policy) is policy


def test_all_fields_are_read() -> None:
    given_fields = {
        "max_attempts": 5,
        "backoff": "linear",
        "initial": "30s",
        "factor": 3,
        "max": "2h",
        "jitter": 0.25,
    }
    assert read_retry(given_fields) == RetryPolicy(5, Backoff.LINEAR, 30 * SECOND, 3.0, 2 * HOUR, 0.25)
    assert read_retry(7).max_attempts == 7


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ("often", "/retry"),
        (True, "/retry"),
        ({"max_attempts": 0}, "/retry/max_attempts"),
        ({"max_attempts": 1.5}, "/retry/max_attempts"),
        ({"max_attempts": 100_000}, "/retry/max_attempts"),
        ({"backoff": "random"}, "/retry/backoff"),
        ({"initial": "-1s"}, "/retry/initial"),
        ({"factor": 0.5}, "/retry/factor"),
        ({"max": "soon"}, "/retry/max"),
        ({"jitter": 1.1}, "/retry/jitter"),
        ({"jitter": True}, "/retry/jitter"),
        ({"attempts": 3}, "/retry/attempts"),
    ],
)
def test_what_is_wrong_is_refused_by_name(value: object, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_retry(value)
    assert [problem.pointer for problem in refusal.value.problems] == [pointer]
