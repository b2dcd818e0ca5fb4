"""Tables for people and JSON for programs."""

from __future__ import annotations

import json

import pytest

from mainspring.cli.output import print_item, print_items

RUN = {
    "id": "r1",
    "status": "failed",
    "result": None,
    "tags": [],
    "error": {"type": "ValueError", "message": "no", "traceback": "Traceback …\nValueError: no\n"},
    "attempts": [{"number": 1, "outcome": "failed", "error": {"type": "ValueError", "message": "no"}, "worker": None}],
}


def test_an_item_is_its_fields_under_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    print_item(RUN, "table")
    assert capsys.readouterr().out.splitlines() == [
        "id        r1",
        "status    failed",
        "error     ValueError: no",
        "          Traceback …",
        "          ValueError: no",
        "attempts  number=1  outcome=failed  ValueError: no",
    ]


def test_items_are_rows_under_heads(capsys: pytest.CaptureFixture[str]) -> None:
    print_items({"items": [RUN, {"id": "longer", "error": None}], "next": "abc"}, ("id", "error.type"), "table")
    told = capsys.readouterr()
    assert told.out.splitlines() == ["ID      TYPE", "r1      ValueError", "longer  -"]
    assert "--cursor abc" in told.err


def test_nothing_found_is_said_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_items({"items": [], "next": None}, ("id",), "table")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "nothing found\n")


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    answer = {"items": [RUN, RUN], "next": None}
    print_items(answer, ("id",), "json")
    assert json.loads(capsys.readouterr().out) == answer
    print_items(answer, ("id",), "jsonl")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [RUN, RUN]


@pytest.mark.parametrize(
    ("terminal", "environment", "bold"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_colours_only_for_people_who_want_them(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    environment: str,
    bold: bool,
) -> None:
    monkeypatch.setenv("NO_COLOR", environment)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    print_items({"items": [RUN]}, ("id",), "table")
    assert capsys.readouterr().out.startswith("\x1b[1m") is bold
