"""Instants, durations and zones as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.errors import InvalidInput
from mainspring.core.model import DAY, HOUR, MINUTE, SECOND
from mainspring.core.times import (
    LONGEST,
    duration_text,
    local_text,
    read_duration,
    read_instant,
    utc_text,
)
from mainspring.core.zone import read_zone


def test_instants() -> None:
    noon = read_instant("2026-12-01T12:00:00Z", "/at")
    assert noon == int(datetime(2026, 12, 1, 12, tzinfo=UTC).timestamp()) * SECOND
    for same in (
        "2026-12-01T13:00:00+01:00",
        "2026-12-01t12:00:00z",
        "2026-12-01 12:00Z",
        "2026-12-01T06:30:00.000000-05:30",
    ):
        assert read_instant(same, "/at") == noon
    assert read_instant("2026-12-01T12:00:00.123456789Z", "/at") == noon + 123_456
    assert read_instant("2016-12-31T23:59:60Z", "/at") == read_instant("2017-01-01T00:00:00Z", "/at")
    assert read_instant(datetime(2026, 12, 1, 14, tzinfo=timezone(timedelta(hours=2))), "/at") == noon


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("2026-12-01T10:00:00", "no offset"),
        (datetime(2026, 12, 1), "no offset"),
        ("2026-12-01", "no RFC 3339 time"),
        ("2026-02-30T10:00:00Z", "no time that exists"),
        ("2026-12-01T25:00:00Z", "no time that exists"),
        ("tomorrow", "no RFC 3339 time"),
        ("0001-01-01T00:00:00+14:00", "outside the years"),
        ("9999-12-31T23:59:59-12:00", "outside the years"),
        ("٢٠٢٦-12-01T10:00:00Z", "no RFC 3339 time"),
        ("2026-12-01T10:00:00Z" * 1_000, "characters"),
        (1_764_583_200, "as text"),
        (None, "as text"),
    ],
)
def test_bad_instants(value: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_instant(value, "/at")
    assert [problem.pointer for problem in refused.value.problems] == ["/at"]
    assert said in str(refused.value)


def test_texts() -> None:
    instant = read_instant("2026-12-01T12:00:00.25Z", "")
    assert utc_text(instant) == "2026-12-01T12:00:00.250Z"
    assert utc_text(instant + 1) == "2026-12-01T12:00:00.250001Z"
    assert utc_text(0) == "1970-01-01T00:00:00.000Z"
    assert local_text(instant - SECOND // 4, "Asia/Kolkata") == "2026-12-01T17:30:00+05:30"
    assert local_text(instant, "America/New_York") == "2026-12-01T07:00:00.250-05:00"


@given(st.integers(-60_000_000_000, 200_000_000_000), st.integers(0, SECOND - 1))
def test_instants_read_back(second: int, rest: int) -> None:
    instant = second * SECOND + rest
    assert read_instant(utc_text(instant), "") == instant


@pytest.mark.parametrize(
    ("value", "duration"),
    [
        (90, 90 * SECOND), (0.25, SECOND // 4), (0, 0), ("90", 90 * SECOND), ("90s", 90 * SECOND), ("5m", 5 * MINUTE),
        ("24h", DAY), ("7d", 7 * DAY), ("1h30m", 90 * MINUTE), ("1h 30m", 90 * MINUTE), ("250ms", SECOND // 4),
        ("2w", 14 * DAY), ("1.5h", 90 * MINUTE), ("PT5M", 5 * MINUTE), ("P1DT2H", 26 * HOUR), ("P2W", 14 * DAY),
        ("PT0.5S", SECOND // 2), (timedelta(minutes=5), 5 * MINUTE),
    ],
)  # fmt: skip
def test_durations(value: object, duration: int) -> None:
    assert read_duration(value, "/delay") == duration


@pytest.mark.parametrize(
    "value",
    [
        -1, -0.5, "-5m", "", "soon", "5 minutes", "5M", "1h30", "P", "PT", "P1M", "P1Y", True, None, [], float("nan"),
        float("inf"), float("-inf"), 1e300, 10**400, "9" * 60, "1" * 1_000_000, "\u0665m", timedelta(seconds=-1),
    ],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_bad_durations(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_duration(value, "/delay")
    assert [problem.pointer for problem in refused.value.problems] == ["/delay"]


@given(st.integers(0, LONGEST))
def test_durations_read_back(duration: int) -> None:
    assert abs(read_duration(duration_text(duration), "") - duration) <= duration >> 52


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("berlin", "Europe/Berlin"), ("europe/berlin", "Europe/Berlin"), ("America/NewYork", "America/New_York"),
        ("America/New York", "America/New_York"), ("utc", "UTC"), ("PST", "America/Los_Angeles"),
        ("+02:00", "Etc/GMT-2"), ("UTC+2", "is an offset"), ("", "is empty"),
    ],
)  # fmt: skip
def test_a_zone_that_is_none_is_told_which_was_meant(name: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_zone(name, "/timezone")
    assert meant in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd", "/etc/passwd", "UTC\0", "Europe/../UTC", "Europe", "posix/UTC", "localtime", "right/UTC",
        "x" * 1_000_000, "Europe/Berlin ", " UTC", ".", "C:\\zone", 5, None, "tzdata.zi", "zone.tab", "Ünited",
    ],
    ids=lambda name: repr(name)[:20],
)  # fmt: skip
def test_what_is_no_zone_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_zone(name, "/timezone")
    assert len(str(refused.value)) < 200


def test_zones_are_read_once() -> None:
    assert read_zone("Europe/Berlin", "") is read_zone("Europe/Berlin", "")
