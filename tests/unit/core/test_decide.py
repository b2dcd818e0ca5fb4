"""What becomes of a run when an attempt ends or its worker is lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.decide import (
    Next,
    Tally,
    decide_cancelled,
    decide_completed,
    decide_failed,
    decide_lost,
    decide_released,
    decide_retry_later,
    record_attempt,
)
from mainspring.core.model import DEATHS_MAX, HOUR, MINUTE, SECOND, Evidence
from mainspring.core.policy import OnLost, RunPolicy
from mainspring.core.retry import RetryPolicy
from mainspring.core.states import TRANSITIONS, Outcome, State

PLAIN = RunPolicy()
ASKED = Tally(spent=1, deaths=1, cancel_requested=True)
TALLIES = st.builds(
    Tally, spent=st.integers(0, 20), deaths=st.integers(0, DEATHS_MAX - 1), cancel_requested=st.booleans()
)
POLICIES = st.builds(
    RunPolicy,
    on_lost=st.sampled_from(OnLost),
    retry=st.builds(RetryPolicy, max_attempts=st.integers(1, 10), jitter=st.floats(0, 1)),
)
CHANCES = st.floats(min_value=0, max_value=1, exclude_max=True)
LEAVING_RUNNING = {target for (state, _), target in TRANSITIONS.items() if state is State.RUNNING}


def on_lost(rule: OnLost, attempts: int = 3) -> RunPolicy:
    return RunPolicy(on_lost=rule, retry=RetryPolicy(max_attempts=attempts))


def test_a_completed_attempt_completes_the_run_and_spends_nothing() -> None:
    assert decide_completed(Tally(2, 1)) == Next(State.COMPLETED, Outcome.COMPLETED, 2, 1)


def test_a_requested_cancel_wins_over_everything() -> None:
    cancelled = Next(State.CANCELLED, Outcome.CANCELLED, 1, 1)
    assert decide_completed(ASKED) == cancelled
    assert decide_failed(ASKED, PLAIN, 0.5) == cancelled
    assert decide_failed(ASKED, PLAIN, 0.5, final=True) == cancelled
    assert decide_retry_later(ASKED, HOUR) == cancelled
    assert decide_released(ASKED, PLAIN) == cancelled
    for evidence in Evidence:
        assert decide_lost(ASKED, PLAIN, evidence, 0.5, culprit=True) == cancelled


def test_a_handler_may_choose_to_end_as_cancelled() -> None:
    assert decide_cancelled(Tally(1, 0)) == Next(State.CANCELLED, Outcome.CANCELLED, 1, 0)


def test_a_failure_with_attempts_left_is_tried_again_after_its_backoff() -> None:
    """C1."""
    assert decide_failed(Tally(), PLAIN, 0.5) == Next(State.RETRYING, Outcome.FAILED, 1, 0, 2 * SECOND)
    assert decide_failed(Tally(spent=1), PLAIN, 0.5) == Next(State.RETRYING, Outcome.FAILED, 2, 0, 4 * SECOND)


def test_the_last_attempt_fails_the_run() -> None:
    """C1."""
    assert decide_failed(Tally(spent=2), PLAIN, 0.5) == Next(State.FAILED, Outcome.FAILED, 3, 0)


def test_a_timeout_is_recorded_as_such() -> None:
    decision = decide_failed(Tally(spent=2), PLAIN, 0.5, outcome=Outcome.TIMED_OUT)
    assert (decision.state, decision.outcome) == (State.FAILED, Outcome.TIMED_OUT)


def test_a_discarded_run_fails_at_once() -> None:
    decision = decide_failed(Tally(), PLAIN, 0.5, final=True)
    assert (decision.state, decision.spent, decision.reason) == (State.FAILED, 1, "discarded")


def test_a_wait_that_was_asked_for_replaces_the_backoff_up_to_its_maximum() -> None:
    assert decide_failed(Tally(), PLAIN, 0.5, wait=7 * MINUTE).wait == 7 * MINUTE
    assert decide_failed(Tally(), PLAIN, 0.5, wait=24 * HOUR).wait == HOUR
    assert decide_failed(Tally(), PLAIN, 0.5, wait=0).wait == 0


def test_to_be_tried_again_later_spends_nothing() -> None:
    decision = decide_retry_later(Tally(spent=2, deaths=1), 10 * MINUTE)
    assert decision == Next(State.RETRYING, Outcome.RELEASED, 2, 1, 10 * MINUTE, "retry_later")


@pytest.mark.parametrize(
    ("rule", "state", "outcome", "spent"),
    [
        (OnLost.RETRY, State.QUEUED, Outcome.RELEASED, 1),
        (OnLost.FAIL, State.FAILED, Outcome.LOST, 2),
        (OnLost.HOLD, State.UNKNOWN, Outcome.LOST, 2),
    ],
)
def test_a_shutdown_obeys_on_lost_and_spends_nothing_where_it_retries(
    rule: OnLost, state: State, outcome: Outcome, spent: int
) -> None:
    decision = decide_released(Tally(spent=1), on_lost(rule))
    assert decision == Next(state, outcome, spent, 0, reason="shutdown")
    assert decide_lost(Tally(spent=1), on_lost(rule), Evidence.DRAIN, 0.5) == decision


@pytest.mark.parametrize("evidence", [Evidence.STALL, Evidence.SILENCE, Evidence.HOST_DEATH, Evidence.KILL])
def test_only_the_death_of_the_process_counts_against_the_run(evidence: Evidence) -> None:
    """C3: bystanders of a poison run survive."""
    patient = on_lost(OnLost.RETRY, attempts=10)
    assert decide_lost(Tally(deaths=2), patient, evidence, 0.5).deaths == 2
    assert decide_lost(Tally(deaths=2), patient, evidence, 0.5).state is State.QUEUED
    assert decide_lost(Tally(deaths=1), patient, Evidence.DEATH, 0.5).deaths == 2


def test_a_lost_attempt_restarts_at_once_and_spends_one() -> None:
    decision = decide_lost(Tally(), PLAIN, Evidence.SILENCE, 0.5)
    assert decision == Next(State.QUEUED, Outcome.LOST, 1, 0, reason="silence")


def test_a_lost_attempt_that_was_the_last_fails_the_run() -> None:
    """C1."""
    decision = decide_lost(Tally(spent=2), PLAIN, Evidence.STALL, 0.5)
    assert decision == Next(State.FAILED, Outcome.LOST, 3, 0, reason="stall")


def test_the_third_death_ends_a_run_whatever_its_attempts() -> None:
    """C3."""
    patient = on_lost(OnLost.RETRY, attempts=100)
    decision = decide_lost(Tally(spent=2, deaths=2), patient, Evidence.DEATH, 0.5)
    assert (decision.state, decision.deaths, decision.reason) == (State.FAILED, 3, "poison")
    held = decide_lost(Tally(spent=2, deaths=2), on_lost(OnLost.HOLD, 100), Evidence.DEATH, 0.5)
    assert (held.state, held.deaths) == (State.UNKNOWN, 3)


def test_fail_and_hold_never_repeat_a_lost_attempt() -> None:
    for evidence in Evidence:
        assert decide_lost(Tally(), on_lost(OnLost.FAIL), evidence, 0.5).state is State.FAILED
        assert decide_lost(Tally(), on_lost(OnLost.HOLD), evidence, 0.5).state is State.UNKNOWN


def test_the_culprit_of_a_kill_has_timed_out_the_others_were_lost() -> None:
    culprit = decide_lost(Tally(), PLAIN, Evidence.KILL, 0.5, culprit=True)
    assert (culprit.state, culprit.outcome, culprit.wait) == (State.RETRYING, Outcome.TIMED_OUT, 2 * SECOND)
    bystander = decide_lost(Tally(), PLAIN, Evidence.KILL, 0.5)
    assert (bystander.state, bystander.outcome) == (State.QUEUED, Outcome.LOST)


@given(TALLIES, POLICIES, st.sampled_from(Evidence), CHANCES, st.booleans())
def test_a_loss_takes_only_edges_that_a_running_run_has(
    tally: Tally, policy: RunPolicy, evidence: Evidence, chance: float, culprit: bool
) -> None:
    decision = decide_lost(tally, policy, evidence, chance, culprit=culprit)
    assert decision.state in LEAVING_RUNNING
    assert tally.spent <= decision.spent <= tally.spent + 1
    assert tally.deaths <= decision.deaths <= tally.deaths + 1
    if decision.outcome is Outcome.LOST:
        assert decision.spent == tally.spent + 1
    if decision.state is State.QUEUED:
        assert decision.wait == 0


@given(TALLIES, POLICIES, CHANCES, st.booleans(), st.one_of(st.none(), st.integers(0, 10 * HOUR)))
def test_failures_end_within_their_attempts_and_wait_no_longer_than_allowed(
    tally: Tally, policy: RunPolicy, chance: float, final: bool, wait: int | None
) -> None:
    """C1."""
    decision = decide_failed(tally, policy, chance, final=final, wait=wait)
    assert decision.state in LEAVING_RUNNING
    assert 0 <= decision.wait <= policy.retry.maximum
    if decision.state is State.RETRYING:
        assert not final
        assert decision.spent < policy.retry.max_attempts
        assert decision.spent == tally.spent + 1


@given(POLICIES, CHANCES, st.sampled_from(Evidence))
def test_losses_and_failures_in_a_row_come_to_an_end(policy: RunPolicy, chance: float, evidence: Evidence) -> None:
    """C1, C3: nothing repeats for ever, except what a shutdown released."""
    tally = Tally()
    for number in range(1, 12):
        decision = decide_failed(tally, policy, chance) if number % 2 else decide_lost(tally, policy, evidence, chance)
        if decision.state not in (State.QUEUED, State.RETRYING):
            return
        tally = replace(tally, spent=decision.spent, deaths=decision.deaths)
    assert evidence is Evidence.DRAIN


class TestRecords:
    def test_the_first_attempt_begins_the_list(self) -> None:
        text = record_attempt(
            None, number=1, worker="w", started_at=0, finished_at=1_500_000, outcome=Outcome.LOST, error=None
        )
        assert json.loads(text) == [
            {
                "number": 1,
                "worker": "w",
                "started_at": "1970-01-01T00:00:00.000Z",
                "finished_at": "1970-01-01T00:00:01.500Z",
                "outcome": "lost",
                "error": None,
            }
        ]

    def test_later_ones_follow_and_leave_the_earlier_alone(self) -> None:
        first = record_attempt(None, number=1, worker="w", started_at=0, finished_at=1, outcome=Outcome.FAILED)
        error = '{"type":"ValueError","message":"no"}'
        second = record_attempt(
            first, number=2, worker=None, started_at=None, finished_at=None, outcome=Outcome.TIMED_OUT, error=error
        )
        attempts = json.loads(second)
        assert attempts[:1] == json.loads(first)
        assert attempts[1] == {
            "number": 2,
            "worker": None,
            "started_at": None,
            "finished_at": None,
            "outcome": "timed_out",
            "error": {"type": "ValueError", "message": "no"},
        }
