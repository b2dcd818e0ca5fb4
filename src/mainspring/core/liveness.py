"""When silence or an absent sign of life is evidence, and when it may be the store's own doing.

A watcher looks at intervals. All spans are timed by its own monotonic clock and count only while the store answered
every look: a look that failed forgets all suspicions, so an outage of the store accuses nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from mainspring.core.model import Evidence, WorkerInfo

ABSENCE_SECONDS = 2.0
OWN_ABSENCE_SECONDS = 0.4
LOOK_GAP_SECONDS_MAX = 5.0


class Accusation(NamedTuple):
    """`beat` guards a verdict that a later beat refutes; None where the evidence stands for itself."""

    worker: UUID
    evidence: Evidence
    beat: int | None


class Look(NamedTuple):
    """What one look saw: workers, and of each sign whether it is absent or its process stopped."""

    workers: Sequence[WorkerInfo]
    absent: frozenset[UUID]
    stopped: frozenset[UUID]
    epoch: str


class Rules(NamedTuple):
    """`own_signs`: each worker holds its own sign, and beats mean nothing. Spans in seconds.

    An own sign is gone only with its process; it is still given a moment, since the keeper knows more: whether the
    process was killed because of a run, or ended a drain.
    """

    own_signs: bool
    stall_share: float = 1 / 3
    absence: float = ABSENCE_SECONDS
    own_absence: float = OWN_ABSENCE_SECONDS


@dataclass(slots=True)
class Memory:
    """What the watcher remembers between looks."""

    epoch: str = ""
    looked_at: float | None = None
    beats: dict[UUID, tuple[int, float]] = field(default_factory=dict)
    absent_since: dict[UUID, float] = field(default_factory=dict)
    stopped_since: dict[UUID, float] = field(default_factory=dict)

    def forget(self) -> None:
        """The store did not answer: nothing that was seen before counts any more."""
        self.looked_at = None
        self.beats.clear()
        self.absent_since.clear()
        self.stopped_since.clear()


def judge(memory: Memory, look: Look, now: float, rules: Rules) -> list[Accusation]:
    """Takes the look into memory and says who is accused of what."""
    if memory.looked_at is not None and now - memory.looked_at > LOOK_GAP_SECONDS_MAX:
        memory.forget()
    if look.epoch != memory.epoch:
        memory.absent_since.clear()
        memory.epoch = look.epoch
    memory.looked_at = now
    _remember(memory.absent_since, look.absent, now)
    _remember(memory.stopped_since, look.stopped, now)
    accusations = [_accuse(memory, worker, now, rules) for worker in look.workers if worker.lost_at is None]
    memory.beats = {worker.id: memory.beats[worker.id] for worker in look.workers if worker.id in memory.beats}
    return [accusation for accusation in accusations if accusation is not None]


def _accuse(memory: Memory, worker: WorkerInfo, now: float, rules: Rules) -> Accusation | None:
    lease = worker.lease / 1_000_000
    if rules.own_signs:
        if worker.id in memory.absent_since and _lasted(memory.absent_since, worker.id, now) >= rules.own_absence:
            return Accusation(worker.id, Evidence.DEATH, None)
        if _lasted(memory.stopped_since, worker.id, now) >= lease * rules.stall_share:
            return Accusation(worker.id, Evidence.STALL, None)
        return None
    known = memory.beats.get(worker.id)
    if known is None or known[0] != worker.beat:
        known = memory.beats[worker.id] = (worker.beat, now)
    # A worker whose keeper died goes on beating by itself until another one has come up, which may take its time.
    absent_since = None if worker.keeper is None else memory.absent_since.get(worker.keeper)
    if absent_since is not None and now - max(absent_since, known[1]) >= rules.absence:
        return Accusation(worker.id, Evidence.HOST_DEATH, worker.beat)
    if now - known[1] >= lease:
        return Accusation(worker.id, Evidence.SILENCE, worker.beat)
    return None


def _lasted(since: Mapping[UUID, float], identity: UUID, now: float) -> float:
    return now - since[identity] if identity in since else 0.0


def _remember(since: dict[UUID, float], seen: frozenset[UUID], now: float) -> None:
    for identity in [known for known in since if known not in seen]:
        del since[identity]
    for identity in seen:
        since.setdefault(identity, now)
