"""A run that was lost says why: what was seen of its worker, and why it is not started again."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from mainspring.core.decide import Tally
from mainspring.core.losses import Loss, LostAttempt, lose
from mainspring.core.model import Evidence
from mainspring.core.states import Outcome, State

WORKERS = [UUID(int=number) for number in range(1, 6)]
NOW = 1_800_000_000_000_000


def lost(
    evidence: Evidence | None,
    document: dict[str, object] | None = None,
    *,
    number: int = 1,
    tally: Tally | None = None,
    attempts: str | None = None,
    culprit: bool = False,
) -> Loss:
    attempt = LostAttempt(
        number,
        WORKERS[number],
        NOW - 1_000_000,
        tally or Tally(),
        json.dumps(document) if document else None,
        attempts,
        evidence.value if evidence else None,
        culprit=culprit,
    )
    return lose(attempt, 0.5, NOW)


def error_of(loss: Loss) -> dict[str, str]:
    error: dict[str, str] = json.loads(loss.error or "null")
    return error


@pytest.mark.parametrize(
    ("evidence", "word"),
    [
        (Evidence.DEATH, "process died"),
        (Evidence.HOST_DEATH, "keeper were gone together"),
        (Evidence.STALL, "was stopped"),
        (Evidence.SILENCE, "nothing was heard"),
        (Evidence.KILL, "another run blocked it"),
        (Evidence.DRAIN, "was shut down"),
    ],
)
def test_the_error_names_the_evidence_and_the_rule(evidence: Evidence, word: str) -> None:
    loss = lost(evidence, {"on_lost": "fail"})
    error = error_of(loss)
    assert (error["type"], error["traceback"]) == ("WorkerLost", "")
    assert word in error["message"]
    assert "on_lost is `fail`" in error["message"]


def test_the_last_attempt_says_that_it_was() -> None:
    loss = lost(Evidence.SILENCE, {"retry": {"max_attempts": 2}}, tally=Tally(spent=1))
    assert loss.decision.state is State.FAILED
    assert error_of(loss)["message"].endswith("the last of its 2 attempts")


def test_a_poison_run_names_the_three_deaths_and_no_other_loss() -> None:
    document: dict[str, object] = {"retry": {"max_attempts": 10}}
    loss, tally = None, Tally()
    for number, evidence in enumerate((Evidence.DEATH, Evidence.STALL, Evidence.DEATH, Evidence.DEATH), start=1):
        loss = lost(evidence, document, number=number, tally=tally, attempts=loss.attempts if loss else None)
        tally = Tally(loss.decision.spent, loss.decision.deaths)
    assert loss is not None
    message = error_of(loss)["message"]
    assert (loss.decision.state, loss.decision.reason) == (State.FAILED, "poison")
    assert [f"attempt {number} on worker {WORKERS[number]}" in message for number in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ]


def test_a_run_that_goes_on_says_only_what_was_seen() -> None:
    loss = lost(None)
    assert loss.decision.state is State.QUEUED
    assert error_of(loss)["message"] == "the worker's process died during the attempt"
    assert json.loads(loss.attempts)[0]["error"] == error_of(loss)


def test_the_run_that_blocked_its_worker_has_timed_out() -> None:
    loss = lost(Evidence.KILL, {"timeout": "5s"}, culprit=True)
    assert loss.decision.outcome is Outcome.TIMED_OUT
    assert error_of(loss)["type"] == "TimeoutError"
    assert "5s" in error_of(loss)["message"]


def test_a_drain_that_gives_the_run_back_is_no_loss() -> None:
    loss = lost(Evidence.DRAIN)
    assert loss.decision.outcome is Outcome.RELEASED
    assert error_of(loss)["type"] == "Shutdown"


def test_a_cancelled_run_has_no_error() -> None:
    assert lost(Evidence.DEATH, tally=Tally(cancel_requested=True)).error is None
