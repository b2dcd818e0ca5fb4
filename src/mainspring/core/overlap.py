"""Whether an occurrence may start while earlier runs of its job have not ended."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from mainspring.core.policy import Overlap

QUEUE_ALL_MAX = 1000


class OverlapVerdict(StrEnum):
    START = "start"
    SKIP = "skip"
    HOLD = "hold"  # wait, held(overlap), until the live ones have ended
    REPLACE = "replace"  # cancel the live ones, wait until they have ended


def decide_overlap(rule: Overlap, *, live: int, held: int, catch_up: bool = False) -> OverlapVerdict:
    """`live` counts the job's held, queued, running, retrying and unknown runs; `held` those of them that wait for
    overlap. Runs of a catch-up follow one another unless overlap is allowed."""
    if live == 0 or rule is Overlap.ALLOW:
        return OverlapVerdict.START
    if catch_up:
        return OverlapVerdict.HOLD if held < QUEUE_ALL_MAX else OverlapVerdict.SKIP
    match rule:
        case Overlap.SKIP:
            return OverlapVerdict.SKIP
        case Overlap.QUEUE_ONE:
            return OverlapVerdict.HOLD if held == 0 else OverlapVerdict.SKIP
        case Overlap.QUEUE_ALL:
            return OverlapVerdict.HOLD if held < QUEUE_ALL_MAX else OverlapVerdict.SKIP
        case Overlap.CANCEL:
            return OverlapVerdict.REPLACE
        case _:
            assert_never(rule)
