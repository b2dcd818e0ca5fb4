"""How a lost attempt is told: what becomes of its run, the attempt's record, and the error that says why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from mainspring.core.decide import Next, Tally, decide_lost, record_attempt
from mainspring.core.model import DEATHS_MAX, Duration, Evidence, Instant
from mainspring.core.policy import OnLost, RunPolicy, policy_of
from mainspring.core.states import Outcome, State
from mainspring.core.times import duration_text

_SAYS = {
    Evidence.DEATH: "the worker's process died during the attempt",
    Evidence.HOST_DEATH: "the worker's process and its keeper were gone together during the attempt",
    Evidence.STALL: "the worker's process was stopped for longer than the stall limit",
    Evidence.SILENCE: "nothing was heard of the worker's host for a whole lease",
    Evidence.KILL: "the worker was killed because another run blocked it past its timeout",
    Evidence.DRAIN: "the worker was shut down before the attempt had ended",
}


@dataclass(frozen=True, slots=True)
class LostAttempt:
    """What the store knows of an attempt whose worker was lost. `evidence` is None where nobody knows the worker."""

    number: int
    worker: UUID
    started_at: Instant | None
    tally: Tally
    document: str | None
    attempts: str | None
    evidence: str | None
    culprit: bool = False


class Loss(NamedTuple):
    decision: Next
    attempts: str
    error: str | None


def lose(lost: LostAttempt, random_value: float, now: Instant) -> Loss:
    """A worker that nobody knows any more has stopped by itself: its runs are those of a dead one."""
    evidence = Evidence(lost.evidence) if lost.evidence else Evidence.DEATH
    policy = policy_of(lost.document)
    decision = decide_lost(lost.tally, policy, evidence, random_value, culprit=lost.culprit)
    error = _error(lost, decision, policy, evidence)
    attempts = record_attempt(
        lost.attempts,
        number=lost.number,
        worker=str(lost.worker),
        started_at=lost.started_at,
        finished_at=now,
        outcome=decision.outcome,
        error=error,
    )
    return Loss(decision, attempts, error)


def borne_until(document: str | None, evidence: str | None, lost_at: Instant, lease: Duration) -> Instant:
    """When the attempt of a lost worker may be taken up: at once, but for silence that the run bears beyond the lease.

    The worker may be alive and cut off, and its handler goes on for almost as long as the run's `lost_after` says.
    """
    lost_after = policy_of(document).lost_after if evidence == Evidence.SILENCE else None
    return lost_at if lost_after is None else lost_at + max(0, lost_after - lease)


def _error(lost: LostAttempt, decision: Next, policy: RunPolicy, evidence: Evidence) -> str | None:
    if decision.outcome is Outcome.CANCELLED:
        return None
    if decision.outcome is Outcome.TIMED_OUT:
        timeout = duration_text(policy.timeout or 0)
        return _text("TimeoutError", f"the attempt blocked its worker past its timeout of {timeout}; it was killed")
    kind = "Shutdown" if decision.outcome is Outcome.RELEASED else "WorkerLost"
    message = _SAYS[evidence]
    if decision.state is State.FAILED:
        message += f"; {_why_final(lost, decision, policy)}"
    return _text(kind, message)


def _why_final(lost: LostAttempt, decision: Next, policy: RunPolicy) -> str:
    if decision.reason == "poison":
        deaths = ", ".join([*_earlier_deaths(lost.attempts), f"attempt {lost.number} on worker {lost.worker}"])
        return f"{DEATHS_MAX} processes died under this run ({deaths}), so it is not started again"
    if policy.on_lost is OnLost.FAIL:
        return "on_lost is `fail`, so the run is not repeated"
    return f"that was the last of its {policy.retry.max_attempts} attempts"


def _earlier_deaths(attempts: str | None) -> list[str]:
    recorded = json.loads(attempts) if attempts else []
    return [f"attempt {each['number']} on worker {each['worker']}" for each in recorded if _tells_of_death(each)]


def _tells_of_death(attempt: dict[str, dict[str, str] | None]) -> bool:
    error = attempt["error"]
    return error is not None and error["type"] == "WorkerLost" and error["message"].startswith(_SAYS[Evidence.DEATH])


def _text(kind: str, message: str) -> str:
    return json.dumps({"type": kind, "message": message, "traceback": ""})
