"""A stored document read into the rules of its runs."""

from __future__ import annotations

import pytest

from mainspring.core.errors import InvalidInput
from mainspring.core.model import HOUR, MINUTE, SECOND
from mainspring.core.policy import DEFAULT_POLICY, OnLost, Overlap, RunPolicy, policy_of, read_policy
from mainspring.core.retry import Backoff, RetryPolicy


def test_nothing_given_is_the_promised_default() -> None:
    assert policy_of(None) is DEFAULT_POLICY
    assert policy_of("{}") == DEFAULT_POLICY
    assert (
        RunPolicy(
            timeout=HOUR,
            cancel_grace=10 * SECOND,
            retry=RetryPolicy(),
            on_lost=OnLost.RETRY,
            lost_after=None,
            expires_in=None,
            overlap=Overlap.SKIP,
        )
        == DEFAULT_POLICY
    )


def test_all_rules_are_read() -> None:
    policy = read_policy(
        {
            "timeout": "5m",
            "cancel_grace": 3,
            "retry": {"max_attempts": 5, "backoff": "fixed"},
            "on_lost": "hold",
            "lost_after": "2m",
            "expires_in": "1h",
            "overlap": "queue_one",
            "tags": ["what", "is", "no", "rule"],
        }
    )
    assert policy == RunPolicy(
        timeout=5 * MINUTE,
        cancel_grace=3 * SECOND,
        retry=RetryPolicy(max_attempts=5, backoff=Backoff.FIXED),
        on_lost=OnLost.HOLD,
        lost_after=2 * MINUTE,
        expires_in=HOUR,
        overlap=Overlap.QUEUE_ONE,
    )


def test_a_timeout_of_null_is_none_at_all() -> None:
    assert read_policy({"timeout": None}).timeout is None


@pytest.mark.parametrize("name", ["timeout", "cancel_grace", "lost_after", "expires_in"])
def test_a_wrong_span_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_policy({name: "-5s"})
    assert [problem.pointer for problem in refusal.value.problems] == [f"/{name}"]


def test_equal_documents_are_read_once() -> None:
    assert policy_of('{"timeout":"7s"}') is policy_of('{"timeout":' + '"7s"}')
