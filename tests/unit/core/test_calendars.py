"""Calendars: what closes a day, and where occurrences go that fall on one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mainspring.core.calendar_read import read_calendar
from mainspring.core.calendars import Calendar
from mainspring.core.errors import InvalidInput
from mainspring.core.model import DAY
from mainspring.core.schedule import between, count_between, next_after, previous_before, read_schedule
from mainspring.core.times import local_text, read_instant

ICALENDAR = """BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
UID:christmas\r
SUMMARY:Christmas\\, both d\r
 ays\r
DTSTART;VALUE=DATE:20201225\r
DTEND;VALUE=DATE:20201227\r
RRULE:FREQ=YEARLY\r
EXDATE;VALUE=DATE:20271225\r
BEGIN:VALARM\r
TRIGGER:-PT5M\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:move\r
DTSTART:20261119T090000Z\r
DTEND:20261120T110000Z\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:gone\r
STATUS:CANCELLED\r
DTSTART;VALUE=DATE:20261201\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:party\r
DTSTART;VALUE=DATE:20260105\r
DURATION:P1D\r
RRULE:FREQ=MONTHLY;BYDAY=1MO;COUNT=3\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:party\r
RECURRENCE-ID;VALUE=DATE:20260202\r
DTSTART;VALUE=DATE:20260203\r
END:VEVENT\r
END:VCALENDAR\r
"""


def _off(calendar: Calendar, text: str) -> bool:
    return calendar.is_off(read_instant(f"{text}T00:00:00Z", "") // DAY)


def test_dates_weekdays_and_icalendar_close_days() -> None:
    calendar = read_calendar(
        "be", {"dates": ["2026-07-21"], "days_off": ["sat", "Sunday"], "icalendar": ICALENDAR}, version=3
    )
    assert calendar.version == 3
    closed = [
        "2026-07-21",
        "2026-11-21",
        "2026-11-22",
        "2026-12-25",
        "2026-12-26",
        "2028-12-25",
        "2026-11-19",
        "2026-11-20",
    ]
    closed += ["2026-01-05", "2026-02-03", "2026-03-02"]
    assert [day for day in closed if not _off(calendar, day)] == []
    open_days = ["2026-07-22", "2026-12-24", "2026-12-28", "2027-12-27", "2026-12-01", "2026-02-02", "2026-04-06"]
    assert [day for day in open_days if _off(calendar, day)] == []


@pytest.mark.parametrize(
    ("document", "pointer", "said"),
    [
        ({"dates": ["2026-02-30"]}, "/dates/0", "no date"),
        ({"dates": "2026-12-25"}, "/dates", "must be a list"),
        ({"dates": ["2026-12-25"] * 10_001}, "/dates", "at most"),
        ({"days_off": ["sat", "someday"]}, "/days_off/1", "no day"),
        ({"days_off": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}, "/days_off", "no working day"),
        ({"day_off": ["mon"]}, "/day_off", "did you mean 'days_off'"),
        ({"icalendar": "hello"}, "/icalendar", "BEGIN:VCALENDAR"),
        ({"icalendar": 5}, "/icalendar", "must be iCalendar text"),
        ({"icalendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225"}, "/icalendar", "line 2"),
        ({"icalendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VEVENT\n"}, "/icalendar", "no DTSTART"),
        ({"icalendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:2026-12-25\nEND:VEVENT\n"}, "/icalendar", "line 3"),
        (
            {"icalendar": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225\nRRULE:FREQ=HOURLY\nEND:VEVENT\n"},
            "/icalendar",
            "line 4",
        ),
        ({"icalendar": "BEGIN:VCALENDAR" + "x" * 2_000_000}, "/icalendar", "characters"),
    ],
)
def test_refusals_point_at_what_is_wrong(document: Mapping[str, object], pointer: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_calendar("be", document)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
    assert said in str(refused.value)


WEEK = read_instant("2026-11-19T00:00:00Z", "")  # a Thursday
WORKING = {"working": Calendar("working", dates=frozenset({WEEK // DAY + 1}), days_off=frozenset({5, 6}))}  # Friday off


def _week(fields: Mapping[str, object], days: int = 6) -> list[str]:
    schedule = read_schedule({"timezone": "Europe/Berlin", **fields})
    found = list(between(schedule, WEEK, WEEK + days * DAY, anchor=WEEK, limit=50, calendars=WORKING))
    counts = count_between(schedule, WEEK, WEEK + days * DAY, anchor=WEEK, calendars=WORKING)
    assert (counts.fires, counts.closed) == (sum(each.fires for each in found), sum(not each.fires for each in found))
    instant, backwards = WEEK + days * DAY, []
    while (each := previous_before(schedule, instant, anchor=WEEK, calendars=WORKING)) and each.nominal >= WEEK:
        backwards.append(each)
        instant = each.nominal
    assert backwards == found[::-1]
    return [
        local_text(each.nominal, schedule.zone)[8:13]
        + "".join(" " + mark for mark in each.marks)
        + ("" if each.fires else " -")
        for each in found
    ]


def test_skip_leaves_a_record_on_each_day_off() -> None:
    assert _week({"cron": "0 9 * * *", "calendar": {"name": "working"}}) == [
        "19T09",
        "20T09 calendar -",
        "21T09 calendar -",
        "22T09 calendar -",
        "23T09",
        "24T09",
    ]


def test_next_moves_to_the_next_working_day_and_two_on_one_instant_are_one_run_and_one_skip() -> None:
    calendar = {"name": "working", "roll": "next"}
    assert _week({"cron": "0 9 * * fri", "calendar": calendar}) == ["23T09 calendar"]
    assert _week({"cron": "0 9 * * fri,sat", "calendar": calendar}) == ["21T09 calendar -", "23T09 calendar"]
    assert _week({"cron": "0 9 * * mon,sat", "calendar": calendar}) == ["21T09 calendar -", "23T09"]


def test_previous_and_nearest() -> None:
    assert _week({"cron": "0 9 * * fri", "calendar": {"name": "working", "roll": "previous"}}) == ["19T09 calendar"]
    assert _week({"cron": "0 9 * * sat", "calendar": {"name": "working", "roll": "nearest"}}) == ["19T09 calendar"]
    assert _week({"cron": "0 9 * * sun", "calendar": {"name": "working", "roll": "nearest"}}) == ["23T09 calendar"]


def test_intervals_only_leave_records() -> None:
    assert _week({"every": "12h", "calendar": {"name": "working"}}, days=2) == [
        "19T13",
        "20T01 calendar -",
        "20T13 calendar -",
    ]
    with pytest.raises(InvalidInput, match="interval keeps its beat"):
        read_schedule({"every": "12h", "calendar": {"name": "working", "roll": "next"}})


def test_the_nth_and_last_working_day_of_the_month() -> None:
    last = read_schedule({"cron": "0 9 * * *", "calendar": {"name": "working", "working_day": -1}})
    third = read_schedule({"cron": "0 9 * * *", "calendar": {"name": "working", "working_day": 3}})
    for schedule, expected in (
        (last, ["2026-11-30", "2026-12-31", "2027-01-29"]),
        (third, ["2026-12-03", "2027-01-05"]),
    ):
        found = between(schedule, WEEK, WEEK + 90 * DAY, anchor=WEEK, limit=len(expected), calendars=WORKING)
        assert [local_text(each.nominal, "UTC")[:10] for each in found] == expected


def test_a_calendar_nobody_made_is_named() -> None:
    schedule = read_schedule({"cron": "0 9 * * *", "calendar": {"name": "nowhere"}})
    with pytest.raises(InvalidInput, match="no calendar is named 'nowhere'"):
        next_after(schedule, WEEK, anchor=WEEK)


@pytest.mark.parametrize(
    ("calendar", "pointer"),
    [
        (5, "/calendar"),
        ({"name": ""}, "/calendar/name"),
        ({"name": "a", "roll": "sideways"}, "/calendar/roll"),
        ({"name": "a", "rol": "next"}, "/calendar/rol"),
        ({"name": "a", "working_day": 0}, "/calendar/working_day"),
    ],
)
def test_bad_uses_are_refused(calendar: object, pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_schedule({"cron": "0 9 * * *", "calendar": calendar})
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
