"""Recurrence rules, held against lists worked out from RFC 5545 and a plain walk over days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest

from mainspring.core.errors import InvalidInput
from mainspring.core.model import SECOND
from mainspring.core.schedule import Schedule, between, next_after, previous_before, read_schedule
from mainspring.core.times import local_text, read_instant

FAR = read_instant("2200-01-01T00:00:00Z", "")


def _schedule(rule: str, start: str, zone: str = "UTC") -> Schedule:
    return read_schedule({"rrule": rule, "start_at": start, "timezone": zone})


def _days(rule: str, start: str, count: int = 6) -> list[str]:
    schedule = _schedule(rule, start)
    found = list(between(schedule, 0, FAR, anchor=0, limit=count))
    backwards, instant = [], found[-1].nominal + 1
    while (previous := previous_before(schedule, instant, anchor=0)) is not None:
        backwards.append(previous)
        instant = previous.nominal
    assert backwards == found[::-1]
    return [local_text(each.nominal, "UTC")[:16].removesuffix("T09:00") for each in found]


START = "1997-09-02T09:00:00Z"  # a Tuesday, the one the RFC's examples begin at
EXAMPLES: list[tuple[str, Sequence[str]]] = [
    ("FREQ=DAILY;COUNT=3", ["1997-09-02", "1997-09-03", "1997-09-04"]),
    ("FREQ=DAILY;UNTIL=19970904T090000Z", ["1997-09-02", "1997-09-03", "1997-09-04"]),
    ("FREQ=DAILY;UNTIL=19970904", ["1997-09-02", "1997-09-03", "1997-09-04"]),
    ("FREQ=DAILY;INTERVAL=10;COUNT=3", ["1997-09-02", "1997-09-12", "1997-09-22"]),
    ("FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=3", ["1997-09-02", "1997-09-16", "1997-09-30"]),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", ["1997-09-02", "1997-09-07", "1997-09-16", "1997-09-21"]),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", ["1997-09-02", "1997-09-14", "1997-09-16", "1997-09-28"]),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=1FR", ["1997-09-05", "1997-10-03", "1997-11-07"]),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=-2MO", ["1997-09-22", "1997-10-20", "1997-11-17"]),
    ("FREQ=MONTHLY;COUNT=3;BYMONTHDAY=-3", ["1997-09-28", "1997-10-29", "1997-11-28"]),
    ("FREQ=MONTHLY;COUNT=3;BYMONTHDAY=31", ["1997-10-31", "1997-12-31", "1998-01-31"]),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13;COUNT=3", ["1998-02-13", "1998-03-13", "1998-11-13"]),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", ["1997-09-04", "1997-10-07", "1997-11-06"]),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2;COUNT=3", ["1997-09-29", "1997-10-30", "1997-11-27"]),
    ("FREQ=MONTHLY;COUNT=2;BYDAY=MO,1FR", ["1997-09-05", "1997-09-08"]),
    ("FREQ=YEARLY;INTERVAL=2;BYMONTH=1;COUNT=3", ["1999-01-02", "2001-01-02", "2003-01-02"]),
    ("FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200", ["2000-01-01", "2000-04-09", "2000-07-18", "2003-01-01"]),
    ("FREQ=YEARLY;BYDAY=20MO;COUNT=3", ["1998-05-18", "1999-05-17", "2000-05-15"]),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=TH;COUNT=3", ["1998-03-05", "1998-03-12", "1998-03-19"]),
    ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8;COUNT=2", ["1997-11-04", "2001-11-06"]),
    ("FREQ=YEARLY;BYYEARDAY=-1;COUNT=2", ["1997-12-31", "1998-12-31"]),
    ("FREQ=YEARLY;BYDAY=MO;BYSETPOS=20;COUNT=2", ["1998-05-18", "1999-05-17"]),
    ("FREQ=HOURLY;INTERVAL=3;COUNT=3", ["1997-09-02", "1997-09-02T12:00", "1997-09-02T15:00"]),
    ("FREQ=MINUTELY;INTERVAL=90;COUNT=3", ["1997-09-02", "1997-09-02T10:30", "1997-09-02T12:00"]),
    ("FREQ=MINUTELY;INTERVAL=20;BYHOUR=23;COUNT=3", ["1997-09-02T23:00", "1997-09-02T23:20", "1997-09-02T23:40"]),
    ("FREQ=SECONDLY;INTERVAL=900;COUNT=2", ["1997-09-02", "1997-09-02T09:15"]),
    ("FREQ=DAILY;BYHOUR=6,20;BYMINUTE=15;COUNT=2", ["1997-09-02T20:15", "1997-09-03T06:15"]),
    ("RRULE:freq=daily;count=1;", ["1997-09-02"]),
]


@pytest.mark.parametrize(("rule", "expected"), EXAMPLES)
def test_examples(rule: str, expected: Sequence[str]) -> None:
    assert _days(rule, START, len(expected)) == list(expected)


def test_the_rarest_day_is_found() -> None:
    assert _days("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SA;COUNT=2", START) == ["2020-02-29", "2048-02-29"]
    assert _days("FREQ=DAILY;INTERVAL=6;BYMONTHDAY=31;BYDAY=TH,WE;COUNT=2", "2025-06-25T09:00:00Z") == [
        "2025-07-31",
        "2034-08-31",
    ]


def test_weekly_with_interval_is_what_a_walk_finds() -> None:
    schedule = _schedule("FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,TH;BYMONTH=1,2,3,11,12", START)
    monday = date(1997, 9, 1)
    expected = []
    for number in range(4_000):
        day = date(1997, 9, 2) + timedelta(days=number)
        if day.weekday() in (0, 3) and (day - monday).days // 7 % 3 == 0 and day.month in (1, 2, 3, 11, 12):
            expected.append(day)
    found = between(schedule, 0, read_instant("2008-08-14T00:00:00Z", ""), anchor=0, limit=4_000)
    assert [datetime.fromisoformat(local_text(each.nominal, "UTC")).date() for each in found] == expected


def test_without_a_start_it_begins_at_creation() -> None:
    anchor = read_instant("2026-11-19T10:20:30Z", "")
    for rule, expected in (
        ("FREQ=DAILY", "2026-11-20T10:20:30"),
        ("FREQ=DAILY;BYHOUR=9", "2026-11-20T09:00:00"),
        ("FREQ=HOURLY;BYMINUTE=5", "2026-11-19T11:05:00"),
    ):
        found = next_after(read_schedule({"rrule": rule}), anchor, anchor=anchor)
        assert found is not None
        assert local_text(found.nominal, "UTC").startswith(expected)


def test_wall_time_holds_through_clock_changes_and_hours_follow_elapsed_time() -> None:
    daily = _schedule("FREQ=DAILY", "2026-03-28T02:30:00+01:00", "Europe/Berlin")
    assert [local_text(each.nominal, daily.zone) for each in between(daily, 0, FAR, anchor=0, limit=3)] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    hourly = _schedule("FREQ=HOURLY", "2026-10-25T01:00:00+02:00", "Europe/Berlin")
    steps = [each.nominal for each in between(hourly, 0, FAR, anchor=0, limit=5)]
    assert {later - earlier for earlier, later in pairwise(steps)} == {3_600 * SECOND}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("", "FREQ must be one of"),
        ("FREQ=MONTLY", "FREQ must be one of"),
        ("FREQ=DAILY;BYDAYS=MO", "did you mean BYDAY"),
        ("FREQ=DAILY;BYDAY=XX", "BYDAY takes"),
        ("FREQ=DAILY;BYDAY=2MO", "takes no number"),
        ("FREQ=MONTHLY;BYDAY=6MO", "from 1 to 5"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL must be"),
        ("FREQ=DAILY;COUNT=99999999", "COUNT must be"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20260101", "ends by one of them"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL takes"),
        ("FREQ=DAILY;UNTIL=20260230", "UNTIL takes"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR takes 0 to 23"),
        ("FREQ=DAILY;BYHOUR=9;BYHOUR=10", "twice"),
        ("FREQ=DAILY;BYMONTHDAY=0", "BYMONTHDAY takes"),
        ("FREQ=DAILY;BYMONTHDAY=-٣", "BYMONTHDAY takes"),
        ("FREQ=MONTHLY;BYSETPOS=1", "BYSETPOS picks"),
        ("DTSTART=20260101T000000Z;FREQ=DAILY", "start_at"),
        ("FREQ=WEEKLY;BYWEEKNO=20", "BYWEEKNO"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31", "never fires"),
        ("FREQ=SECONDLY;INTERVAL=2;BYSECOND=1", "never fires"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=40", "never fires"),
        ("FREQ=DAILY;" * 100_000, "characters long"),
    ],
)
def test_refusals_say_what_is_wrong(rule: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_schedule({"rrule": rule})
    assert said in str(refused.value)
    assert {problem.pointer for problem in refused.value.problems} == {"/rrule"}
