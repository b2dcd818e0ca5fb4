"""A payload is checked against a registered signature without the task's code."""

import enum
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pytest

from mainspring.tasks.signature import check_payload
from mainspring.tasks.task import Task


@dataclass
class Address:
    street: str
    number: int = 1


class Color(enum.Enum):
    RED = "red"


def handler(
    to: str,
    where: Address | None = None,
    *,
    color: Color = Color.RED,
    mode: Literal["a", "b"] = "a",
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0,
    pairs: list[tuple[str, int]] | None = None,
    table: dict[str, int] | None = None,
) -> None: ...


SIGNATURE = Task(handler, name="handler").info().signature or ""


@pytest.mark.parametrize(
    "payload",
    [
        {"to": "x"},
        {"to": "x", "where": {"street": "s"}},
        {"to": "x", "where": None, "color": "red", "mode": "b", "share": 0.5},
        {"to": "x", "pairs": [["a", 1], ["b", 2]], "table": {"a": 1}},
        ["x", {"street": "s", "number": 3}],
    ],
)
def test_what_fits_has_no_problems(payload: object) -> None:
    assert check_payload(SIGNATURE, payload) == []


@pytest.mark.parametrize(
    ("payload", "pointer"),
    [
        ("text", "/payload"),
        ({}, "/payload/to"),
        ({"to": 1}, "/payload/to"),
        ({"to": True}, "/payload/to"),
        ({"to": "x", "ot": 1}, "/payload/ot"),
        ({"to": "x", "where": {}}, "/payload/where/street"),
        ({"to": "x", "where": {"street": 1}}, "/payload/where/street"),
        ({"to": "x", "where": 5}, "/payload/where"),
        ({"to": "x", "color": "blue"}, "/payload/color"),
        ({"to": "x", "mode": "c"}, "/payload/mode"),
        ({"to": "x", "share": 2}, "/payload/share"),
        ({"to": "x", "pairs": [["a", "b"]]}, "/payload/pairs/0/1"),
        ({"to": "x", "table": {"a/b": "c"}}, "/payload/table/a~1b"),
        (["x", None, 3], "/payload/2"),
    ],
)
def test_what_does_not_fit_is_pointed_at(payload: object, pointer: str) -> None:
    assert [problem.pointer for problem in check_payload(SIGNATURE, payload)] == [pointer]


def test_all_problems_are_told_at_once() -> None:
    problems = check_payload(SIGNATURE, {"color": 1, "other": 2})
    assert {problem.pointer for problem in problems} == {"/payload/color", "/payload/other", "/payload/to"}


def test_an_open_ended_task_takes_other_names() -> None:
    def anything(first: int, **rest: object) -> None: ...

    signature = Task(anything, name="anything").info().signature or ""
    assert check_payload(signature, {"first": 1, "other": "x"}) == []
