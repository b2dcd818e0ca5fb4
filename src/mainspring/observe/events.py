"""Everything that happens, as typed events in batches; logs, metrics and traces subscribe to them.

An event tells what is already so: it is published after the store answered, and nothing depends on anybody hearing it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from mainspring.core.model import Claimed, Duration, Ending


class EndedRun(NamedTuple):
    """An attempt whose ending the store accepted, and how long its handler took (microseconds)."""

    claimed: Claimed
    ending: Ending
    took: Duration


class RescuedRun(NamedTuple):
    run_id: UUID
    worker: UUID
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class Event:
    """The root of all events."""


@dataclass(frozen=True, slots=True)
class JobsSubmitted(Event):
    """Jobs were accepted; `tasks` has one name a job."""

    ids: Sequence[UUID]
    tasks: Sequence[str]


@dataclass(frozen=True, slots=True)
class JobsChanged(Event):
    """Somebody paused, resumed, edited, cancelled or deleted jobs; `action` is that word."""

    ids: Sequence[UUID]
    action: str


@dataclass(frozen=True, slots=True)
class RunsFired(Event):
    """Occurrences became runs or skips; `lateness` (microseconds) is that of the worst of them."""

    scheduler: UUID
    jobs: int
    runs: Sequence[UUID]
    skipped: int
    lateness: Duration


@dataclass(frozen=True, slots=True)
class RunsClaimed(Event):
    worker: UUID
    runs: Sequence[Claimed]


@dataclass(frozen=True, slots=True)
class RunsEnded(Event):
    """Attempts ended and the store took it; a run goes on where its ending says retrying or queued."""

    worker: UUID
    runs: Sequence[EndedRun]


@dataclass(frozen=True, slots=True)
class RunsRefused(Event):
    """The store refused endings as stale: somebody else has taken these runs."""

    worker: UUID
    runs: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class RunsAbandoned(Event):
    """Handlers did not stop when they were asked to; their runs ended without them."""

    worker: UUID
    runs: Sequence[UUID]
    why: str


@dataclass(frozen=True, slots=True)
class RunsRescued(Event):
    runs: Sequence[RescuedRun]


@dataclass(frozen=True, slots=True)
class RunsPromoted(Event):
    """Retries came due."""

    count: int


@dataclass(frozen=True, slots=True)
class RunsExpired(Event):
    count: int


@dataclass(frozen=True, slots=True)
class LogLinesDropped(Event):
    """Lines of handlers' logs were not kept."""

    worker: UUID
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class WorkerStarted(Event):
    worker: UUID
    host: str
    slots: int
    queues: tuple[str, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerDraining(Event):
    worker: UUID
    why: str


@dataclass(frozen=True, slots=True)
class WorkerStopped(Event):
    worker: UUID


@dataclass(frozen=True, slots=True)
class WorkerLost(Event):
    """A worker was declared lost; `evidence` says by what."""

    worker: UUID
    evidence: str


@dataclass(frozen=True, slots=True)
class WorkerRevoked(Event):
    """This worker found that it had been declared lost: it dropped what it held and began anew as `successor`."""

    worker: UUID
    successor: UUID
    dropped: int


@dataclass(frozen=True, slots=True)
class SchedulerStarted(Event):
    scheduler: UUID
    host: str


@dataclass(frozen=True, slots=True)
class SchedulerStopped(Event):
    scheduler: UUID


@dataclass(frozen=True, slots=True)
class KeeperStarted(Event):
    """The worker started a keeper, or another one after that was gone."""

    worker: UUID
    pid: int


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """A loop (`where`) met a store that does not answer; it goes on trying."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class StoreBack(Event):
    where: str
    after: Duration


@dataclass(frozen=True, slots=True)
class StepFailed(Event):
    """A bug: a loop's step raised what nobody expected. The loop goes on after a pause."""

    where: str
    why: str


Listener = Callable[[Event], None]


class Bus:
    """Hands each event to all who listen, at once, in the publisher's thread."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    @property
    def heard(self) -> bool:
        """Whether anybody listens: building a large event for nobody can be left out."""
        return bool(self._listeners)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` for each event from now on; returns the way to stop it."""
        self._listeners = (*self._listeners, listener)

        def stop() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return stop

    def publish(self, event: Event) -> None:
        """Never raises: a listener that fails is logged and the others still hear the event."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # whoever listens must not be able to stop what happens
                _logger.exception("a listener failed on %s", type(event).__name__)


_logger = logging.getLogger("mainspring.observe")
