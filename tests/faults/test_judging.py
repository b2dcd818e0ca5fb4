"""The judge is judged first: each kind of wrong is planted once, and seen."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from mainspring.core.model import Kind, Lane, Run
from mainspring.core.states import State
from tests.faults.judging import judge
from tests.faults.ledger import Line

ID = UUID("01980000-0000-7000-8000-000000000001")
FIRST, SECOND = 101, 102

LOST_ONCE = [
    (0.0, "start", 1, 1, FIRST),
    (1.0, "start", 2, 2, SECOND),
    (2.0, "end", 2, 2, SECOND),
]
OUTCOMES = {1: "lost", 2: "completed"}


def test_a_repeat_after_a_kill_is_explained() -> None:
    assert verdict(LOST_ONCE, OUTCOMES, {FIRST: {"killed"}}) == []


def test_a_plain_run_is_well() -> None:
    assert verdict([(0.0, "start", 1, 1, FIRST), (1.0, "end", 1, 1, FIRST)], {}, {}, attempt=1) == []


@pytest.mark.parametrize(
    ("what", "lines", "outcomes", "hurt"),
    [
        ("B5", LOST_ONCE, OUTCOMES, {}),
        ("B5", LOST_ONCE, OUTCOMES, {SECOND: {"killed"}}),
        ("B5", LOST_ONCE, {2: "completed"}, {FIRST: {"killed"}}),
        ("B5", LOST_ONCE, {1: "released", 2: "completed"}, {FIRST: {"killed"}}),
        ("B7", [*LOST_ONCE, (1.5, "end", 1, 1, FIRST)], OUTCOMES, {FIRST: {"killed"}}),
        ("B8", [LOST_ONCE[0], (1.0, "start", 2, 1, SECOND), LOST_ONCE[2]], OUTCOMES, {FIRST: {"killed"}}),
        ("B1", LOST_ONCE, {1: "completed", 2: "completed"}, {}),
        ("A1", LOST_ONCE[:2], OUTCOMES, {FIRST: {"killed"}}),
        ("A1", [*LOST_ONCE[:2], (0.5, "end", 1, 1, FIRST)], OUTCOMES, {FIRST: {"killed"}}),
    ],
)
def test_what_is_wrong_is_seen(
    what: str, lines: list[tuple[float, str, int, int, int]], outcomes: dict[int, str], hurt: dict[int, set[str]]
) -> None:
    assert any(text.startswith(what) for text in verdict(lines, outcomes, hurt))


def test_what_has_not_ended_or_is_gone_or_failed_early_is_seen() -> None:
    assert verdict(LOST_ONCE, OUTCOMES, {FIRST: {"killed"}}, state=State.RUNNING)[0].startswith("A1")
    assert verdict(LOST_ONCE, OUTCOMES, {FIRST: {"killed"}}, state=State.FAILED)[0].startswith("C1")
    assert judge([None], [ID], [], {})[0].startswith("A1")


def test_what_nobody_asked_for_is_seen() -> None:
    assert judge([], [], [Line(0, 0.0, "start", str(ID), str(ID), 1, 1, FIRST)], {})[0].startswith("A2")


def verdict(
    lines: list[tuple[float, str, int, int, int]],
    outcomes: dict[int, str],
    hurt: dict[int, set[str]],
    *,
    state: State = State.COMPLETED,
    attempt: int = 2,
) -> list[str]:
    attempts = json.dumps([{"number": number, "outcome": outcome} for number, outcome in outcomes.items()])
    run = Run(
        id=ID,
        job_id=ID,
        lane=Lane("default", "default", "work"),
        kind=Kind.IMMEDIATE,
        state=state,
        priority=50,
        payload=b"{}",
        document=None,
        ready_at=0,
        scheduled_at=0,
        created_at=0,
        fence=attempt,
        attempt=attempt,
        attempts=attempts if outcomes else None,
    )
    told = [
        Line(number, at, kind, str(ID), str(ID), attempt_number, fence, pid)
        for number, (at, kind, attempt_number, fence, pid) in enumerate(lines)
    ]
    return judge([run], [ID], told, hurt)
