"""Schedules read from the fields of a job, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from time import process_time
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.core.errors import InvalidInput
from mainspring.core.model import DAY, HOUR, MINUTE, SECOND
from mainspring.core.schedule import (
    between,
    count_between,
    next_after,
    previous_before,
    read_schedule,
    refuse_if_over,
)
from mainspring.core.times import local_text, read_instant

CREATED = read_instant("2026-11-19T10:20:30.5Z", "")


def _next(fields: Mapping[str, object], count: int = 3, job_id: UUID | None = None) -> list[int]:
    schedule = read_schedule(fields, job_id=job_id)
    return [each.nominal for each in between(schedule, CREATED + 1, CREATED + 5_000 * DAY, anchor=CREATED, limit=count)]


def test_one_time_schedules() -> None:
    assert read_schedule({}).kind == "now"
    assert not read_schedule({}).recurring
    for fields, due in (
        ({}, CREATED),
        ({"delay": "24h"}, CREATED + DAY),
        ({"at": "2026-12-01T10:00:00+01:00"}, read_instant("2026-12-01T09:00:00Z", "")),
    ):
        schedule = read_schedule(fields)
        found = next_after(schedule, 0, anchor=CREATED)
        assert found is not None
        assert (found.nominal, found.scheduled_at, found.fires, found.marks) == (due, due, True, ())
        assert next_after(schedule, due, anchor=CREATED) is None
        assert previous_before(schedule, due + 1, anchor=CREATED) == found
        assert previous_before(schedule, due, anchor=CREATED) is None


def test_an_interval_counts_from_creation_and_first_fires_one_interval_later() -> None:
    assert _next({"every": "5m"}) == [CREATED + 5 * MINUTE, CREATED + 10 * MINUTE, CREATED + 15 * MINUTE]
    assert _next({"every": 0.25}, 2) == [CREATED + SECOND // 4, CREATED + SECOND // 2]


def test_an_interval_with_a_start_first_fires_at_it() -> None:
    start = read_instant("2026-11-20T00:00:00Z", "")
    assert _next({"every": "7m", "start_at": "2026-11-20T00:00:00Z"}, 2) == [start, start + 7 * MINUTE]
    past = read_instant("2026-11-01T00:00:00Z", "")
    assert all((each - past) % (7 * HOUR) == 0 for each in _next({"every": "7h", "start_at": "2026-11-01T00:00:00Z"}))


def test_start_is_included_and_end_is_not() -> None:
    fields = {"cron": "0 * * * *", "start_at": "2026-11-19T12:00:00Z", "end_at": "2026-11-19T15:00:00Z"}
    noon = read_instant("2026-11-19T12:00:00Z", "")
    assert _next(fields, 9) == [noon, noon + HOUR, noon + 2 * HOUR]
    schedule = read_schedule(fields)
    assert count_between(schedule, 0, noon + 10 * DAY, anchor=CREATED).fires == 3
    last = previous_before(schedule, noon + DAY, anchor=CREATED)
    assert last is not None
    assert last.nominal == noon + 2 * HOUR


def test_several_expressions_are_one_schedule_without_doubles() -> None:
    found = _next({"cron": ["0 12 * * *", "0 */6 * * *", "30 12 * * thu"]}, 5)
    assert [local_text(each, "UTC")[8:16] for each in found] == [
        "19T12:00",
        "19T12:30",
        "19T18:00",
        "20T00:00",
        "20T06:00",
    ]
    mixed = _next({"cron": ["*/20 0 12 * * *", "0 0 12 * * *"], "dialect": "seconds"}, 3)
    assert [local_text(each, "UTC")[11:19] for each in mixed] == ["12:00:00", "12:00:20", "12:00:40"]


def test_every_nth_counts_from_the_beginning() -> None:
    weekly = {"cron": "0 9 * * thu", "every_nth": 2}
    assert [local_text(each, "UTC")[:10] for each in _next(weekly)] == ["2026-11-26", "2026-12-10", "2026-12-24"]
    started = weekly | {"start_at": "2026-11-19T09:00:00Z"}
    assert [local_text(each, "UTC")[:10] for each in _next(started)] == ["2026-12-03", "2026-12-17", "2026-12-31"]
    for nth in (2, 3, 7, 50):
        every = _next({"cron": "*/25 3,7,20 1-20 * *"}, 1_000)
        fields = {"cron": "*/25 3,7,20 1-20 * *", "every_nth": nth}
        assert _next(fields, 15) == every[::nth][:15]
        schedule = read_schedule(fields)
        end = every[::nth][14] + 1
        assert count_between(schedule, CREATED, end, anchor=CREATED).fires == 15
        last = previous_before(schedule, end, anchor=CREATED)
        assert last is not None
        assert last.nominal == end - 1


def test_jitter_and_spread_move_later_in_order_and_alike_for_everybody() -> None:
    fields = {"cron": "*/10 * * * *", "jitter": "5m", "spread": "20m"}
    jobs = [UUID(int=number) for number in range(40)]
    shifts = []
    for job in jobs:
        schedule = read_schedule(fields, job_id=job)
        found = list(between(schedule, CREATED, CREATED + DAY, anchor=CREATED, limit=50))
        assert found == list(
            between(read_schedule(fields, job_id=job), CREATED, CREATED + DAY, anchor=CREATED, limit=50)
        )
        assert all(each.nominal <= each.scheduled_at < each.nominal + 10 * MINUTE for each in found)
        shifts.append(found[0].scheduled_at - found[0].nominal)
    assert len(set(shifts)) == len(jobs)
    steady = read_schedule({"every": "1h", "spread": "30m"}, job_id=jobs[3])
    found = list(between(steady, CREATED, CREATED + DAY, anchor=CREATED, limit=20))
    assert len({each.scheduled_at - each.nominal for each in found}) == 1


@pytest.mark.parametrize(
    ("fields", "pointer", "said"),
    [
        ({"cron": "0 9 * * *", "every": "5m"}, "/every", "at most one"),
        ({"at": "2026-12-01T10:00:00Z", "cron": "* * * * *"}, "/cron", "at most one"),
        ({"at": "2026-12-01T10:00:00"}, "/at", "no offset"),
        ({"delay": -5}, "/delay", "negative"),
        ({"every": 0}, "/every", "too short"),
        ({"every": "soon"}, "/every", "no duration"),
        ({"cron": []}, "/cron", "empty list"),
        ({"cron": ["* * * * *"] * 100}, "/cron", "at most"),
        ({"cron": ["* * * * *", "61 * * * *"]}, "/cron/1", "minute field"),
        ({"cron": "* * * * *", "dialect": "quartz"}, "/dialect", "unix, seconds"),
        ({"cron": "* * * * *", "timezone": "Europe/Berlim"}, "/timezone", "Europe/Berlin"),
        ({"cron": "* * * * *", "dst": {"gap": "later"}}, "/dst/gap", "after, skip, before"),
        ({"cron": "* * * * *", "dst": {"holes": "x"}}, "/dst/holes", "gap and fold"),
        ({"cron": "* * * * *", "dst": "after"}, "/dst", "must be an object"),
        ({"every": "1h", "start_at": "2026-12-01T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"}, "/end_at", "not after"),
        (
            {"cron": "0 0 1 1 *", "start_at": "2026-02-01T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"},
            "/end_at",
            "never fires",
        ),
        ({"cron": "* * * * *", "every_nth": 0}, "/every_nth", "1 to 1000"),
        ({"every": "1h", "every_nth": 2}, "/every_nth", "goes with cron"),
        ({"cron": ["* * * * *", "1 * * * *"], "every_nth": 2}, "/every_nth", "one expression"),
        ({"every": "1h", "jitter": "1 fortnight"}, "/jitter", "no duration"),
    ],
)
def test_what_is_wrong_is_pointed_at(fields: Mapping[str, object], pointer: str, said: str) -> None:
    before = process_time()
    with pytest.raises(InvalidInput) as refused:
        read_schedule(fields)
    assert process_time() - before < 0.05
    assert [problem.pointer for problem in refused.value.problems] == [pointer]
    assert said in str(refused.value)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_schedule(
            {"cron": "61 * * * *", "timezone": "Mars", "jitter": -1, "start_at": "now", "dst": {"fold": "no"}}
        )
    pointers = {problem.pointer for problem in refused.value.problems}
    assert pointers == {"/cron", "/timezone", "/jitter", "/start_at", "/dst/fold"}


def test_a_schedule_that_is_over_is_refused_when_the_time_is_known() -> None:
    schedule = read_schedule({"cron": "0 * * * *", "end_at": "2026-11-19T11:30:00Z"})
    refuse_if_over(schedule, CREATED)
    with pytest.raises(InvalidInput, match="/end_at: never fires"):
        refuse_if_over(schedule, CREATED + HOUR)


@pytest.mark.parametrize("fields", [
    {"cron": "* * * * *"}, {"cron": "0 0 29 2 *"}, {"cron": "* * * * *", "every_nth": 3}, {"rrule": "FREQ=DAILY"},
    {"rrule": "FREQ=YEARLY;BYDAY=MO;BYSETPOS=2"}, {"every": "36500d"}, {"every": "1h"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("start", ["0002-01-01T00:00:00Z", "9998-12-31T23:59:59Z", "9997-12-31T00:00:00Z"])
def test_the_ends_of_time_are_no_cliff(fields: Mapping[str, object], start: str) -> None:
    begin = read_instant(start, "")
    schedule = None
    with suppress(InvalidInput):
        schedule = read_schedule({**fields, "start_at": start, "timezone": "Pacific/Kiritimati"})
    if schedule is None:
        assert start > "9997"
        return
    for instant in (begin, begin - DAY, begin + DAY, begin + 4_000 * DAY):
        for found in (next_after(schedule, instant, anchor=begin), previous_before(schedule, instant, anchor=begin)):
            assert found is None or local_text(found.nominal, schedule.zone)
    assert count_between(schedule, begin, begin + DAY, anchor=begin).fires >= 0


EXPRESSIONS = st.sampled_from(
    [
        "* * * * *",
        "*/7 2 * * *",
        "0 9 * * mon-fri",
        "30 2 * * *",
        "0 0 29 2 *",
        "15 1-3 L * *",
        "0 */5 * * 5L",
        "0 0 1,15 * fri",
    ]
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Gaza"]
)
POLICIES = st.fixed_dictionaries(
    {"gap": st.sampled_from(["after", "skip", "before"]), "fold": st.sampled_from(["first", "second", "both"])}
)


@settings(deadline=None)
@given(EXPRESSIONS, ZONES, POLICIES, st.integers(0, 70 * 365 * DAY))
def test_forwards_and_backwards_agree(expression: str, zone: str, dst: dict[str, str], instant: int) -> None:
    schedule = read_schedule({"cron": expression, "timezone": zone, "dst": dst})
    following = next_after(schedule, instant, anchor=0)
    assert following is not None
    assert following.nominal > instant
    previous = previous_before(schedule, following.nominal, anchor=0)
    assert previous is None or previous.nominal <= instant
    assert previous_before(schedule, following.nominal + 1, anchor=0) == following
    counts = count_between(schedule, instant + 1, following.nominal + 1, anchor=0)
    assert counts.fires + counts.gap == 1
