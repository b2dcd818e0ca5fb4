"""What a handler did becomes what is written; errors are bounded and storable."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from mainspring.core.errors import Cancel, Discard, RetryLater
from mainspring.core.model import SECOND, TRACEBACK_BYTES_MAX, Claimed
from mainspring.core.policy import OnLost, RunPolicy
from mainspring.core.retry import RetryPolicy
from mainspring.core.states import Outcome, State
from mainspring.worker import outcome
from mainspring.worker.outcome import Cause

WORKER = UUID(int=1)
POLICY = RunPolicy(retry=RetryPolicy(max_attempts=2, jitter=0.0))


def claimed(*, attempt: int = 1, spent: int = 0, attempts: str | None = None) -> Claimed:
    return Claimed(
        UUID(int=2), 5, attempt, spent, 0, "t", b"", None, 0, SECOND, UUID(int=2), "q", 50, False, attempts, 0, 0
    )


@pytest.mark.parametrize(
    ("error", "spent", "state", "recorded", "wait"),
    [
        (ValueError("x"), 0, State.RETRYING, Outcome.FAILED, 2 * SECOND),
        (ValueError("x"), 1, State.FAILED, Outcome.FAILED, 0),
        (RetryLater("10m"), 1, State.RETRYING, Outcome.RELEASED, 600 * SECOND),
        (RetryLater("soon"), 0, State.RETRYING, Outcome.FAILED, 2 * SECOND),
        (Discard("no"), 0, State.FAILED, Outcome.FAILED, 0),
        (Cancel("no"), 0, State.CANCELLED, Outcome.CANCELLED, 0),
        (SystemExit(1), 0, State.RETRYING, Outcome.FAILED, 2 * SECOND),
    ],
)
def test_errors_by_intent(error: BaseException, spent: int, state: State, recorded: Outcome, wait: int) -> None:
    following = outcome.after_error(claimed(attempt=spent + 1, spent=spent), POLICY, error, 0.5)
    assert (following.state, following.outcome, following.wait) == (state, recorded, wait)


@pytest.mark.parametrize(
    ("cause", "on_lost", "state", "recorded"),
    [
        (Cause.TIMEOUT, OnLost.RETRY, State.RETRYING, Outcome.TIMED_OUT),
        (Cause.CANCEL, OnLost.RETRY, State.CANCELLED, Outcome.CANCELLED),
        (Cause.RELEASE, OnLost.RETRY, State.QUEUED, Outcome.RELEASED),
        (Cause.RELEASE, OnLost.FAIL, State.FAILED, Outcome.LOST),
        (Cause.RELEASE, OnLost.HOLD, State.UNKNOWN, Outcome.LOST),
        (Cause.LOST, OnLost.RETRY, State.QUEUED, Outcome.LOST),
    ],
)
def test_stops_by_cause(cause: Cause, on_lost: OnLost, state: State, recorded: Outcome) -> None:
    following = outcome.after_stop(claimed(), replace(POLICY, on_lost=on_lost), cause, 0.5)
    assert following is not None
    assert (following.state, following.outcome) == (state, recorded)


def test_nothing_is_said_of_a_run_that_was_taken_away() -> None:
    assert outcome.after_stop(claimed(), POLICY, Cause.REVOKED, 0.5) is None


def test_the_only_attempt_of_an_ended_run_needs_no_list() -> None:
    ending = outcome.ending_of(claimed(), outcome.after_return(claimed()), worker=WORKER, finished_at=2 * SECOND)
    assert ending.attempts is None


def test_every_other_attempt_is_listed() -> None:
    first = outcome.after_error(claimed(), POLICY, ValueError("x"), 0.5)
    error = outcome.describe_error(ValueError("x"))
    ending = outcome.ending_of(claimed(), first, worker=WORKER, finished_at=2 * SECOND, error=error)
    again = claimed(attempt=2, spent=1, attempts=ending.attempts)
    last = outcome.ending_of(again, outcome.after_return(again), worker=WORKER, finished_at=9 * SECOND, result=b"1")
    attempts = json.loads(last.attempts or "")
    assert [(each["number"], each["outcome"]) for each in attempts] == [(1, "failed"), (2, "completed")]
    assert attempts[0]["error"]["message"] == "x"
    assert attempts[1]["finished_at"] == "1970-01-01T00:00:09.000Z"
    assert last.result == b"1"


def test_a_result_travels_with_a_completion_only() -> None:
    following = outcome.after_return(claimed(), cancel_requested=True)
    ending = outcome.ending_of(claimed(), following, worker=WORKER, finished_at=0, result=b"1")
    assert (ending.state, ending.result) == (State.CANCELLED, None)


def test_giving_back_spends_nothing_and_keeps_the_earlier_attempts() -> None:
    ending = outcome.given_back(claimed(attempt=2, spent=1, attempts="[]"))
    assert (ending.started, ending.state, ending.spent, ending.attempts) == (False, State.QUEUED, 1, "[]")


def test_an_error_tells_type_message_and_where_the_handler_failed() -> None:
    def handler() -> None:
        raise KeyError("missing")

    with pytest.raises(KeyError) as caught:
        handler()
    told = json.loads(outcome.describe_error(caught.value))
    assert (told["type"], told["message"]) == ("KeyError", "'missing'")
    assert "in handler" in told["traceback"]


def test_a_type_outside_the_language_is_named_in_full() -> None:
    class Odd(Exception): ...

    assert json.loads(outcome.describe_error(Odd()))["type"].endswith("Odd")
    assert json.loads(outcome.describe_error(Odd()))["type"].count(".") > 1


def test_a_long_traceback_keeps_its_beginning_and_its_end() -> None:
    told = json.loads(outcome.error_text("E", "m", "begin" + "ä" * 100_000 + "end"))
    trace = told["traceback"]
    assert len(trace.encode()) <= TRACEBACK_BYTES_MAX
    assert trace.startswith("begin")
    assert trace.endswith("end")
    assert "bytes left out" in trace


def test_what_no_store_can_hold_is_written_out() -> None:
    told = json.loads(outcome.error_text("E", "a\x00b\ud800c", ""))
    assert told["message"] == "a\\x00b\\ud800c"


def test_an_error_without_readable_message_is_still_told() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert "no readable message" in outcome.describe_error(Mute())


def test_a_result_over_its_bound_is_refused() -> None:
    assert outcome.bounded(b"x" * 262_144)
    with pytest.raises(outcome.ResultTooLarge, match="256 KiB"):
        outcome.bounded(b"x" * 262_145)
