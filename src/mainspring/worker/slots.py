"""What a worker holds: slots that carry out one run each, and the plan by which a run is carried out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from mainspring.core.errors import MainspringError
from mainspring.core.model import Claimed
from mainspring.core.policy import RunPolicy, policy_of
from mainspring.core.retry import RetryPolicy
from mainspring.tasks.codec import Arguments
from mainspring.tasks.context import RunContext
from mainspring.tasks.registry import AnyTask
from mainspring.worker.outcome import Cause
from mainspring.worker.runners.thread import Hand

NEVER = math.inf


class Plan(NamedTuple):
    """All that is the same for runs of one task and document. Times are seconds."""

    task: AnyTask
    policy: RunPolicy
    function: Callable[..., Any]
    decode: Callable[[bytes], Arguments]
    encode: Callable[[object], bytes]
    threaded: bool
    timeout: float
    grace: float
    lost_after: float


def plan_of(task: AnyTask, document: str | None, *, lease: float) -> Plan:
    """A document that cannot be read makes a plan whose attempts fail and say so."""
    decode: Callable[[bytes], Arguments] = task.decode_arguments
    try:
        policy = policy_of(document)
    except (MainspringError, ValueError) as error:
        policy, decode = RunPolicy(retry=RetryPolicy(max_attempts=1)), _raiser(error)
    return Plan(
        task,
        policy,
        task.function,
        decode,
        task.encode_result,
        task.runner == "thread",
        NEVER if policy.timeout is None else policy.timeout / 1e6,
        policy.cancel_grace / 1e6,
        lease if policy.lost_after is None else policy.lost_after / 1e6,
    )


def _raiser(error: Exception) -> Callable[[bytes], Arguments]:
    def refuse(_: bytes) -> Arguments:
        raise error

    return refuse


class Slot:
    """One run at a time. `claimed` is None between runs; `deadline` is when somebody must look at it."""

    __slots__ = (
        "abandoned",
        "cause",
        "claimed",
        "deadline",
        "hand",
        "number",
        "plan",
        "run",
        "since",
        "task",
        "waiter",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.claimed: Claimed | None = None
        self.run: RunContext | None = None
        self.plan: Plan | None = None
        self.since = 0.0
        self.deadline = NEVER
        self.cause: Cause | None = None
        self.abandoned = False
        self.hand: Hand | None = None
        self.task: asyncio.Task[None] | None = None
        self.waiter: asyncio.Future[None] | None = None

    @property
    def busy(self) -> bool:
        return self.claimed is not None

    def thread(self) -> Hand:
        if self.hand is None:
            self.hand = Hand(f"mainspring-{self.number}")
        return self.hand


class Board(Protocol):
    """Where a process says what it is doing, so that its keeper sees it even while its loop is blocked."""

    def begin(self, run_id: bytes, fence: int, deadline: float, now: float) -> None: ...

    def beat(self, now: float, nearest_deadline: float) -> None: ...

    def rest(self) -> None: ...
