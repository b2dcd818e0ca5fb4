"""`mainspring cron explain`: words and instants, without a store."""

from __future__ import annotations

import json

import pytest

from mainspring.cli.main import main


class Said:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["cron", "explain", *words])
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_words_and_instants(explain: Said) -> None:
    code, out, _ = explain("0 9 * * mon-fri", "--next", "2", "--from", "2026-12-04T10:00:00Z")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "At 09:00, on Monday to Friday (UTC)"
    assert [line.split()[0] for line in lines[-2:]] == ["2026-12-07T09:00:00.000Z", "2026-12-08T09:00:00.000Z"]


def test_local_times_and_marks_at_a_clock_change(explain: Said) -> None:
    code, out, _ = explain("30 2 * * *", "--timezone", "Europe/Berlin", "--next", "2", "--from",
                           "2027-03-27T12:00:00Z", "-o", "json")  # fmt: skip
    told = json.loads(out)
    assert (code, told["explanation"], told["timezone"]) == (0, "At 02:30", "Europe/Berlin")
    assert [(each["local"][:19], each["marks"]) for each in told["items"]] == [
        ("2027-03-28T03:00:00", ["dst_gap"]),
        ("2027-03-29T02:30:00", []),
    ]


def test_seconds_by_dialect(explain: Said) -> None:
    code, out, _ = explain("30 0 9 * * *", "--dialect", "seconds", "--next", "0")
    assert (code, out.strip()) == (0, "At 09:00:30 (UTC)")


def test_a_bad_expression_names_what_is_wrong(explain: Said) -> None:
    code, _, err = explain("0 25 * * *")
    assert code == 2
    assert "hour" in err
    assert explain("0 9 30 2 *")[0] == 2
    assert explain("0 9 * * *", "--timezone", "Mars/Base")[0] == 2
