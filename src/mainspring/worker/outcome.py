"""What a handler did, as what becomes of its run. No I/O; the decisions themselves lie in core.decide."""

from __future__ import annotations

import json
import traceback
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, assert_never
from uuid import UUID

from mainspring.core import decide
from mainspring.core.errors import Cancel, Discard, InvalidInput, RetryLater
from mainspring.core.model import (
    RESULT_BYTES_MAX,
    TRACEBACK_BYTES_MAX,
    Claimed,
    Ending,
    Evidence,
    Instant,
)
from mainspring.core.policy import RunPolicy
from mainspring.core.states import Outcome, State
from mainspring.core.times import duration_text, read_duration

_MESSAGE_CHARACTERS_MAX = 8 * 1024
_TYPE_CHARACTERS_MAX = 200
_HEAD_BYTES = 8 * 1024
_OWN_FILES = str(Path(__file__).parent)


class Cause(Enum):
    """Why the worker asked a handler to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    RELEASE = "release"  # the end of a drain
    LOST = "lost"  # the lease could not be renewed: somebody else may have the run soon
    REVOKED = "revoked"  # the store has taken the runs away


class Finished(NamedTuple):
    """An attempt that has ended: what is to be written, and when it ended."""

    claimed: Claimed
    ending: Ending
    took: float
    finished_at: Instant


class ResultTooLarge(Exception):
    """The encoded result is over its bound."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the result takes {size} bytes, the bound is {RESULT_BYTES_MAX} (256 KiB); "
            "store it elsewhere and return a reference to it"
        )


def bounded(result: bytes) -> bytes:
    if len(result) > RESULT_BYTES_MAX:
        raise ResultTooLarge(len(result))
    return result


def after_return(claimed: Claimed, *, cancel_requested: bool = False) -> decide.Next:
    return decide.decide_completed(tally_of(claimed, cancel_requested=cancel_requested))


def after_error(claimed: Claimed, policy: RunPolicy, error: BaseException, random_value: float) -> decide.Next:
    """The handler raised by itself."""
    tally = tally_of(claimed)
    if isinstance(error, RetryLater):
        try:
            return decide.decide_retry_later(tally, read_duration(error.delay, "/delay"))
        except InvalidInput:
            return decide.decide_failed(tally, policy, random_value)
    if isinstance(error, Cancel):
        return decide.decide_cancelled(tally)
    return decide.decide_failed(tally, policy, random_value, final=isinstance(error, Discard))


def after_stop(claimed: Claimed, policy: RunPolicy, cause: Cause, random_value: float) -> decide.Next | None:
    """The handler was asked to stop. None: nothing is to be said about this run any more."""
    match cause:
        case Cause.TIMEOUT:
            return decide.decide_failed(tally_of(claimed), policy, random_value, outcome=Outcome.TIMED_OUT)
        case Cause.CANCEL:
            return decide.decide_cancelled(tally_of(claimed, cancel_requested=True))
        case Cause.RELEASE:
            return decide.decide_released(tally_of(claimed), policy)
        case Cause.LOST:
            return decide.decide_lost(tally_of(claimed), policy, Evidence.SILENCE, random_value)
        case Cause.REVOKED:
            return None
        case _:
            assert_never(cause)


def tally_of(claimed: Claimed, *, cancel_requested: bool = False) -> decide.Tally:
    return decide.Tally(claimed.spent, claimed.deaths, cancel_requested)


def ending_of(
    claimed: Claimed,
    following: decide.Next,
    *,
    worker: UUID,
    finished_at: Instant,
    result: bytes | None = None,
    error: str | None = None,
) -> Ending:
    """The list of attempts is written only where the row itself does not tell all of it."""
    attempts = claimed.attempts
    told_by_row = following.state.ended and following.outcome.value == following.state.word
    if attempts is not None or claimed.attempt > 1 or not told_by_row:
        attempts = decide.record_attempt(
            attempts,
            number=claimed.attempt,
            worker=str(worker),
            started_at=claimed.started_at,
            finished_at=finished_at,
            outcome=following.outcome,
            error=error,
        )
    return Ending(
        claimed.id,
        claimed.fence,
        following.state,
        following.outcome,
        result=result if following.state is State.COMPLETED else None,
        error=error,
        reason=following.reason,
        wait=following.wait,
        spent=following.spent,
        deaths=following.deaths,
        attempts=attempts,
    )


def given_back(claimed: Claimed) -> Ending:
    """The claim whose handler never began is taken back: no attempt, nothing spent, its place kept."""
    return Ending(
        claimed.id,
        claimed.fence,
        State.QUEUED,
        Outcome.RELEASED,
        spent=claimed.spent,
        deaths=claimed.deaths,
        attempts=claimed.attempts,
        started=False,
    )


def cancelled_before_start(claimed: Claimed) -> Ending:
    return Ending(
        claimed.id,
        claimed.fence,
        State.CANCELLED,
        Outcome.CANCELLED,
        spent=claimed.spent,
        deaths=claimed.deaths,
        attempts=claimed.attempts,
        started=False,
    )


def as_cancelled(finished: Finished, worker: UUID) -> Finished:
    """The same attempt's end once the store has said that a cancel came first."""
    claimed, ending, took, finished_at = finished
    if not ending.started:
        return Finished(claimed, cancelled_before_start(claimed), took, finished_at)
    following = decide.decide_cancelled(tally_of(claimed, cancel_requested=True))
    changed = ending_of(claimed, following, worker=worker, finished_at=finished_at)
    return Finished(claimed, changed, took, finished_at)


def describe_error(error: BaseException) -> str:
    """JSON of type, message and traceback, each bounded; the traceback begins where the handler does."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ in ("builtins", "mainspring.core.errors") else _full_name(kind)
    return error_text(name, _message_of(error), _traceback_of(error))


def describe_stop(cause: Cause, policy: RunPolicy) -> str | None:
    """What is recorded for an attempt that the worker stopped."""
    if cause is Cause.TIMEOUT:
        timeout = duration_text(policy.timeout or 0)
        return error_text("TimeoutError", f"the attempt took longer than its timeout of {timeout}", "")
    if cause is Cause.LOST:
        return error_text("LeaseLost", "the worker could not renew its lease and stopped the attempt itself", "")
    if cause is Cause.RELEASE:
        return error_text("Shutdown", "the worker was shut down before the attempt had ended", "")
    return None


def error_text(kind: str, message: str, trace: str) -> str:
    return json.dumps(
        {
            "type": clean(kind)[:_TYPE_CHARACTERS_MAX],
            "message": clean(message)[:_MESSAGE_CHARACTERS_MAX],
            "traceback": _cut(clean(trace)),
        },
        ensure_ascii=False,
    )


def clean(text: str) -> str:
    """What every store can hold: no NUL, no half of a surrogate pair."""
    if "\x00" in text:
        text = text.replace("\x00", "\\x00")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _full_name(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return "(the error has no readable message)"


def _traceback_of(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, _outside_of_us(error.__traceback__)))
    except Exception:  # noqa: BLE001 - as above
        return ""


def _outside_of_us(trace: TracebackType | None) -> TracebackType | None:
    first = trace
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FILES):
        trace = trace.tb_next
    return trace or first


def _cut(trace: str) -> str:
    """Keeps the beginning and, since that is where the error is, most of the end."""
    data = trace.encode()
    if len(data) <= TRACEBACK_BYTES_MAX:
        return trace
    mark = f"\n… {len(data) - TRACEBACK_BYTES_MAX} bytes left out …\n"
    tail = TRACEBACK_BYTES_MAX - _HEAD_BYTES - len(mark.encode())
    return data[:_HEAD_BYTES].decode(errors="ignore") + mark + data[-tail:].decode(errors="ignore")
