"""What becomes of a run when an attempt ends or its worker is lost: one pure decision each.

The shell hands in facts and a random number in [0, 1); it carries out what comes back and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import assert_never

from mainspring.core.model import DEATHS_MAX, Duration, Evidence, Instant
from mainspring.core.policy import OnLost, RunPolicy
from mainspring.core.states import Outcome, State
from mainspring.core.times import utc_text


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run has behind it: how many of its attempts are spent, and how many processes died under it."""

    spent: int = 0
    deaths: int = 0
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """Where the run goes. `outcome` is recorded for the attempt; `wait` counts from the store's now."""

    state: State
    outcome: Outcome
    spent: int
    deaths: int
    wait: Duration = 0
    reason: str | None = None


def decide_completed(tally: Tally) -> Next:
    """The handler returned; a requested cancel wins over its result."""
    if tally.cancel_requested:
        return _cancelled(tally)
    return Next(State.COMPLETED, Outcome.COMPLETED, tally.spent, tally.deaths)


def decide_failed(
    tally: Tally,
    policy: RunPolicy,
    random_value: float,
    *,
    outcome: Outcome = Outcome.FAILED,
    final: bool = False,
    wait: Duration | None = None,
) -> Next:
    """The attempt failed or timed out. `final` forbids a retry; `wait` (asked by the other side) replaces the backoff."""
    if tally.cancel_requested:
        return _cancelled(tally)
    spent = tally.spent + 1
    if final or spent >= policy.retry.max_attempts:
        reason = "discarded" if final else None
        return Next(State.FAILED, outcome, spent, tally.deaths, reason=reason)
    backoff = policy.retry.wait(spent, random_value) if wait is None else min(wait, policy.retry.maximum)
    return Next(State.RETRYING, outcome, spent, tally.deaths, backoff)


def decide_retry_later(tally: Tally, wait: Duration) -> Next:
    """The handler asked to be tried again later: nothing is spent."""
    if tally.cancel_requested:
        return _cancelled(tally)
    return Next(State.RETRYING, Outcome.RELEASED, tally.spent, tally.deaths, wait, reason="retry_later")


def decide_cancelled(tally: Tally) -> Next:
    """The handler stopped because it was asked to, or chose to end as cancelled."""
    return _cancelled(tally)


def decide_released(tally: Tally, policy: RunPolicy) -> Next:
    """A shutdown ended a started attempt and its handler has stopped: `on_lost` decides, nothing is spent."""
    if tally.cancel_requested:
        return _cancelled(tally)
    match policy.on_lost:
        case OnLost.RETRY:
            return Next(State.QUEUED, Outcome.RELEASED, tally.spent, tally.deaths, reason="shutdown")
        case OnLost.FAIL:
            return Next(State.FAILED, Outcome.LOST, tally.spent + 1, tally.deaths, reason="shutdown")
        case OnLost.HOLD:
            return Next(State.UNKNOWN, Outcome.LOST, tally.spent + 1, tally.deaths, reason="shutdown")
        case _:
            assert_never(policy.on_lost)


def decide_lost(
    tally: Tally, policy: RunPolicy, evidence: Evidence, random_value: float, *, culprit: bool = False
) -> Next:
    """The worker was lost under the attempt. Only the death of the process counts against the run itself."""
    if tally.cancel_requested:
        return _cancelled(tally)
    if evidence is Evidence.DRAIN:
        return decide_released(tally, policy)
    if evidence is Evidence.KILL and culprit:
        return decide_failed(tally, policy, random_value, outcome=Outcome.TIMED_OUT)
    deaths = tally.deaths + (1 if evidence is Evidence.DEATH else 0)
    spent = tally.spent + 1
    if policy.on_lost is OnLost.HOLD:
        return Next(State.UNKNOWN, Outcome.LOST, spent, deaths, reason=evidence.value)
    exhausted = spent >= policy.retry.max_attempts or deaths >= DEATHS_MAX
    if policy.on_lost is OnLost.FAIL or exhausted:
        reason = "poison" if deaths >= DEATHS_MAX else evidence.value
        return Next(State.FAILED, Outcome.LOST, spent, deaths, reason=reason)
    return Next(State.QUEUED, Outcome.LOST, spent, deaths, reason=evidence.value)


def record_attempt(
    earlier: str | None,
    *,
    number: int,
    worker: str | None,
    started_at: Instant | None,
    finished_at: Instant | None,
    outcome: Outcome,
    error: str | None = None,
) -> str:
    """The JSON array of a run's ended attempts with one more at its end."""
    attempts = json.loads(earlier) if earlier else []
    attempts.append(
        {
            "number": number,
            "worker": worker,
            "started_at": None if started_at is None else utc_text(started_at),
            "finished_at": None if finished_at is None else utc_text(finished_at),
            "outcome": outcome.value,
            "error": None if error is None else json.loads(error),
        }
    )
    return json.dumps(attempts, separators=(",", ":"))


def _cancelled(tally: Tally) -> Next:
    return Next(State.CANCELLED, Outcome.CANCELLED, tally.spent, tally.deaths)
