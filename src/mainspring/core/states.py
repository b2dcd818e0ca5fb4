"""The life of a run as one table. What is not in the table is refused and changes nothing.

The numbers are stored: never renumber, only add. The store enforces the same table by
conditional updates on (run, fence); the diagram in docs/ is drawn from it.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class State(IntEnum):
    QUEUED = 0
    RUNNING = 1
    HELD = 2
    RETRYING = 3
    PARKED = 4
    UNKNOWN = 5
    COMPLETED = 10
    FAILED = 11
    CANCELLED = 12
    SKIPPED = 13

    @property
    def word(self) -> str:
        """What users read; a parked run shows as running."""
        return _WORDS[self]

    @property
    def ended(self) -> bool:
        return self >= State.COMPLETED


class Event(StrEnum):
    OPEN = "open"
    HOLD = "hold"
    CLAIM = "claim"
    GIVE_BACK = "give_back"
    COMPLETE = "complete"
    RETRY = "retry"
    DUE = "due"
    LOSE = "lose"
    EXHAUST = "exhaust"
    DOUBT = "doubt"
    PARK = "park"
    WAKE = "wake"
    EXPIRE = "expire"
    CANCEL = "cancel"
    RESOLVE_COMPLETED = "resolve_completed"
    RESOLVE_FAILED = "resolve_failed"
    RESOLVE_RETRY = "resolve_retry"


class Outcome(StrEnum):
    """How one attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    RELEASED = "released"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.HELD, Event.OPEN): State.QUEUED,
    (State.HELD, Event.CANCEL): State.CANCELLED,
    (State.HELD, Event.EXPIRE): State.SKIPPED,
    (State.QUEUED, Event.HOLD): State.HELD,
    (State.QUEUED, Event.CLAIM): State.RUNNING,
    (State.QUEUED, Event.CANCEL): State.CANCELLED,
    (State.QUEUED, Event.EXPIRE): State.SKIPPED,
    (State.RUNNING, Event.GIVE_BACK): State.QUEUED,
    (State.RUNNING, Event.COMPLETE): State.COMPLETED,
    (State.RUNNING, Event.RETRY): State.RETRYING,
    (State.RUNNING, Event.LOSE): State.QUEUED,
    (State.RUNNING, Event.EXHAUST): State.FAILED,
    (State.RUNNING, Event.DOUBT): State.UNKNOWN,
    (State.RUNNING, Event.PARK): State.PARKED,
    (State.RUNNING, Event.CANCEL): State.CANCELLED,
    (State.RETRYING, Event.DUE): State.QUEUED,
    (State.RETRYING, Event.CANCEL): State.CANCELLED,
    (State.PARKED, Event.WAKE): State.RUNNING,
    (State.PARKED, Event.COMPLETE): State.COMPLETED,
    (State.PARKED, Event.RETRY): State.RETRYING,
    (State.PARKED, Event.EXHAUST): State.FAILED,
    (State.PARKED, Event.DOUBT): State.UNKNOWN,
    (State.PARKED, Event.CANCEL): State.CANCELLED,
    (State.UNKNOWN, Event.RESOLVE_COMPLETED): State.COMPLETED,
    (State.UNKNOWN, Event.RESOLVE_FAILED): State.FAILED,
    (State.UNKNOWN, Event.RESOLVE_RETRY): State.QUEUED,
    (State.UNKNOWN, Event.CANCEL): State.CANCELLED,
}

LIVE = frozenset(state for state in State if not state.ended)


class ForbiddenTransition(ValueError):
    """The table has no such edge."""

    def __init__(self, state: State, event: Event) -> None:
        self.state = state
        self.event = event
        super().__init__(f"a run that is {state.word} takes no {event.value}")


def after(state: State, event: Event) -> State:
    """The state that follows; refuses what the table does not hold."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ForbiddenTransition(state, event) from None


_WORDS: dict[State, str] = {state: state.name.lower() for state in State} | {State.PARKED: "running"}
