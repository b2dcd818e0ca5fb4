"""Cron expressions: what each form stands for, and what a bad one is told."""

from __future__ import annotations

from datetime import date
from time import process_time
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.cron import Cron, read_cron
from mainspring.core.errors import InvalidInput

EPOCH = date(1970, 1, 1)


def _days(cron: Cron, start: str, count: int = 4) -> list[str]:
    found: list[str] = []
    day = cron.day_from((date.fromisoformat(start) - EPOCH).days)
    while day is not None and len(found) < count:
        found.append(date.fromordinal(day + EPOCH.toordinal()).isoformat())
        day = cron.day_from(day + 1)
    return found


@pytest.mark.parametrize(
    ("days", "start", "expected"),
    [
        ("L * *", "2028-01-01", ["2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"]),
        ("L-2 2 *", "2027-01-01", ["2027-02-26", "2028-02-27"]),
        ("LW * *", "2026-01-01", ["2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30"]),
        ("15W * *", "2026-02-01", ["2026-02-16", "2026-03-16", "2026-04-15", "2026-05-15"]),
        ("1W * *", "2026-08-01", ["2026-08-03", "2026-09-01", "2026-10-01", "2026-11-02"]),
        ("31W * *", "2026-05-01", ["2026-05-29", "2026-07-31", "2026-08-31", "2026-10-30"]),
        ("* * fri#2", "2026-11-01", ["2026-11-13", "2026-12-11"]),
        ("* * mon#5", "2026-01-01", ["2026-03-30", "2026-06-29", "2026-08-31"]),
        ("* * 5L", "2026-11-01", ["2026-11-27", "2026-12-25"]),
        ("* * friL", "2026-11-01", ["2026-11-27"]),
        ("13 * fri", "2026-11-01", ["2026-11-06", "2026-11-13", "2026-11-20"]),
        ("*/13 * fri", "2026-03-01", ["2026-03-27", "2026-05-01", "2026-08-14"]),
        ("1-7 * */7", "2026-11-01", ["2026-11-01", "2026-12-06"]),
        ("29 2 *", "2097-01-01", ["2104-02-29"]),
        ("29 2 */7", "2076-03-01", ["2088-02-29", "2128-02-29"]),
        ("* * fri-sun", "2026-11-19", ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-27"]),
        ("* * 7", "2026-11-19", ["2026-11-22"]),
        ("* JAN,Dec Mon", "2026-12-20", ["2026-12-21", "2026-12-28", "2027-01-04"]),
    ],
)
def test_days(days: str, start: str, expected: list[str]) -> None:
    cron = read_cron(f"0 0 {days}")
    assert _days(cron, start, len(expected)) == expected
    last = (date.fromisoformat(expected[-1]) - EPOCH).days
    backwards = [last]
    while len(backwards) < len(expected):
        previous = cron.day_until(backwards[-1] - 1)
        assert previous is not None
        backwards.append(previous)
    assert [date.fromordinal(day + EPOCH.toordinal()).isoformat() for day in backwards[::-1]] == expected


def test_nicknames_and_six_fields() -> None:
    for nickname, plain in (("@hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"), ("@Yearly", "0 0 1 1 *")):
        assert read_cron(nickname).times == read_cron(plain).times
        assert _days(read_cron(nickname), "2026-11-19") == _days(read_cron(plain), "2026-11-19")
    seconds = read_cron("15,45 30 9 * * *", dialect="seconds")
    assert seconds.unit == 1
    assert [bit for bit in range(86_400) if seconds.times >> bit & 1] == [34_215, 34_245]
    assert read_cron("@daily", dialect="seconds").times == 1


def test_spreading_depends_on_the_job_alone_and_stays_in_its_range() -> None:
    chosen = set()
    for number in range(300):
        job = UUID(int=number)
        fields = read_cron("H H(2-4) ~ * *", job_id=job).fields
        assert fields == read_cron("H H(2-4) ~ * *", job_id=job).fields
        assert 0 <= fields.minutes[0] <= 59
        assert 2 <= fields.hours[0] <= 4
        assert 1 <= fields.days[0] <= 28
        chosen.add(fields.minutes[0])
    assert len(chosen) > 50
    stepped = read_cron("H/15 10~20 * * *", job_id=UUID(int=7)).fields
    assert len(stepped.minutes) == 4
    assert {later - earlier for earlier, later in zip(stepped.minutes, stepped.minutes[1:], strict=False)} == {15}
    assert 10 <= stepped.hours[0] <= 20


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "is empty"),
        ("* * * *", "has 4 fields"),
        ("* * * * * *", '"dialect": "seconds"'),
        ("* * * * * * *", "has 7 fields"),
        ("60 * * * *", "minute field, position 1"),
        ("* 24 * * *", "hour field, position 3"),
        ("* * 0 * *", "the day-of-month is 1-31"),
        ("* * * 13 *", "1-12 or jan-dec"),
        ("* * * * 8", "0-7 or sun-sat"),
        ("0 9 * * mond", "did you mean 'mon'"),
        ("0 9 * jna *", "did you mean 'jan'"),
        ("0 9 * * fri-mon", "did you mean 'fri-7,1-mon'"),
        ("0 17-9 * * *", "did you mean '17-23,0-9'"),
        ("*/0 * * * *", "never moves on"),
        ("*/90 * * * *", 'use the field "every"'),
        ("1-99999999 * * * *", "out of range"),
        ("1,,2 * * * *", "position 3"),
        ("1-2-3 * * * *", "no number"),
        ("٣ * * * *", "no number from 0 to 59"),
        ("? * * * *", "did you mean '*'"),
        ("L * * * *", "day-of-month field"),
        ("0 0 L/2 * *", "takes no step"),
        ("0 0 L-31 * *", "1 to 30"),
        ("0 0 * * L", "friL"),
        ("0 0 * * fri#6", "1 to 5"),
        ("0 0 31 2 *", "never fires"),
        ("0 0 30,31 feb *", "never fires"),
        ("0 0 31 4,6,9,11 */2", "never fires"),
        ("@dayly", "did you mean '@daily'"),
        ("@every 5m", '"every": "5m"'),
        ("@reboot", "start hook"),
        ("TZ=UTC 0 9 * * *", '"timezone"'),
        ("9" * 1_000_000, "1000000 characters"),
        ("," * 999, "has 1 field"),
        ("0," * 490 + "0 * * * x", "position"),
    ],
)
def test_a_bad_expression_is_told_where_and_what_was_meant(expression: str, said: str) -> None:
    before = process_time()
    with pytest.raises(InvalidInput) as refused:
        read_cron(expression)
    assert process_time() - before < 0.05
    assert said in str(refused.value)
    assert len(str(refused.value)) < 300
    assert [problem.pointer for problem in refused.value.problems] == ["/cron"]


@given(st.text(alphabet="0123456789*/-,#LWH~() @TZ=?abcdefjmnorstuvwy\t\n\0é٣", max_size=60))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        cron = read_cron(text)
    except InvalidInput:
        return
    assert cron.times
    assert cron.day_from(20_000) is not None


def test_six_fields_need_six() -> None:
    with pytest.raises(InvalidInput, match="takes six"):
        read_cron("0 9 * * *", dialect="seconds")
    with pytest.raises(InvalidInput, match="as text"):
        read_cron(5)
