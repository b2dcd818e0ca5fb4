"""`mainspring simulate`: a year in advance, without a store."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from mainspring.cli.main import main


class Simulate:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *words])
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err

    def json(self, *words: str) -> Any:
        code, out, err = self(*words, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Simulate:
    return Simulate(capsys)


def test_a_year_with_a_gap_in_it(simulate: Simulate) -> None:
    words = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--from", "2027-01-01T00:00:00Z")
    assert simulate.json(*words)["ran"] == 365
    told = simulate.json(*words, "--dst", '{"gap": "skip"}')
    assert (told["expected"], told["ran"], told["skipped"]) == (365, 364, {"dst_gap": 1})


@pytest.mark.parametrize(("policy", "runs"), [("skip", 1), ("once", 1), ("all", 25)])
def test_an_outage_of_a_month_in_a_year_of_minutes(simulate: Simulate, policy: str, runs: int) -> None:
    begun = time.monotonic()
    told = simulate.json(
        "--cron", "* * * * *", "--from", "2027-01-01T00:00:00Z", "--outage",
        "2027-03-01T00:00:30Z/2027-04-01T00:00:20Z", "--misfire", json.dumps({"policy": policy, "limit": 24}),
    )  # fmt: skip
    assert time.monotonic() - begun < 1
    assert told["expected"] == 365 * 24 * 60
    assert told["ran"] + told["caught_up"] + sum(told["skipped"].values()) == told["expected"]
    [outage] = told["outages"]
    assert len(outage["runs"]) == runs
    assert outage["skipped"] == 31 * 24 * 60 - runs


def test_days_off_and_words(simulate: Simulate) -> None:
    code, out, _ = simulate("--cron", "0 9 * * *", "--from", "2026-12-01T00:00:00Z", "--days", "31",
                            "--dates-off", '{"dates": ["2026-12-25"], "days_off": ["sun"]}')  # fmt: skip
    assert code == 0
    assert "31 occurrences" in out
    assert "26 run in time, 0 are caught up, 5 are skipped (5 for calendar)" in out


def test_what_is_wrong_is_said(simulate: Simulate) -> None:
    assert simulate("--timezone", "UTC")[0] == 2
    assert simulate("--cron", "0 9 31 2 *")[0] == 2
    assert simulate("--every", "1h", "--outage", "now")[0] == 2
