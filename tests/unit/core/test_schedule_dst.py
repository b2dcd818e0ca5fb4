"""Clock changes, held against a walk over UTC minutes with zoneinfo that knows nothing of our code.

In the suite a sample of zones; `MAINSPRING_TEST_ZONES=all` takes every IANA zone with a change from
2020 to 2037, and each of its changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from random import Random
from zoneinfo import ZoneInfo, available_timezones

import pytest

from mainspring.core.instants import Kind
from mainspring.core.model import SECOND
from mainspring.core.schedule import between, count_between, next_after, previous_before, read_schedule
from mainspring.core.zone import read_zone

MINUTE = timedelta(minutes=1)
GAPS = ("after", "skip", "before")
FOLDS = ("first", "second", "both")
SAMPLE = (
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Gaza",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Antarctica/Troll",
)
FIXED = [
    ("0", "2"), ("30", "2"), ("0,30", "1-3"), ("15", "0"), ("59", "23"), ("0", "0,12"), ("5,35", "0-4"),
    ("0-59/7", "2"), ("45", "1,2"), ("0", "3"), ("30", "0,1,2,3,22,23"), ("0-59", "0-23"),
]  # fmt: skip
ELAPSED = [("*", "2"), ("*/15", "*"), ("30", "*"), ("0", "*/2"), ("*/20", "1-3"), ("*", "*")]
WHOLE = os.environ.get("MAINSPRING_TEST_ZONES") == "all"


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


@cache
def _changes(name: str) -> tuple[datetime, ...]:
    """The minutes from which on another offset holds, 2020 to 2037, by steps and a walk."""
    zone, found = ZoneInfo(name), []
    moment = datetime(2020, 1, 1, tzinfo=UTC)
    while moment.year < 2038:
        following = moment + timedelta(hours=12)
        if _offset(moment, zone) != _offset(following, zone):
            minute = moment
            while _offset(minute, zone) == _offset(moment, zone):
                minute += MINUTE
            found.append(minute)
        moment = following
    return tuple(found)


def _numbers(text: str, high: int) -> set[int]:
    numbers: set[int] = set()
    for item in text.split(","):
        base, _, step = item.partition("/")
        low, _, last = ("0", "", str(high)) if base == "*" else base.partition("-")
        numbers |= set(range(int(low), int(last or low) + 1, int(step or 1)))
    return numbers


def _expected(  # one walk over the minutes of the days around a change, by the words of the rule
    minute: str, hour: str, change: datetime, zone: ZoneInfo, gap: str, fold: str
) -> tuple[set[datetime], set[datetime]]:
    minutes, hours = _numbers(minute, 59), _numbers(hour, 23)
    jump = _offset(change, zone) - _offset(change - MINUTE, zone)
    elapsed = minute.startswith("*") or hour.startswith("*")
    fires, left_out = set(), set()
    seen: set[datetime] = set()
    for moment, local in _walk(change, zone):
        if local.minute in minutes and local.hour in hours:
            repeated = local in seen
            twice = repeated or (jump < timedelta(0) and change + jump <= moment < change)
            wanted = elapsed or fold == "both" or not twice or repeated == (fold == "second")
            fires |= {moment} if wanted else set()
        seen.add(local)
    if jump > timedelta(0) and not elapsed:
        before = change.astimezone(zone).replace(tzinfo=None) - jump
        missing = [wall for wall in _minutes(before, before + jump) if wall.minute in minutes and wall.hour in hours]
        for wall in missing:
            if gap == "before":
                fires.add(change - jump + (wall - before))
            elif gap == "after":
                fires.add(change)
            elif change not in fires:
                left_out.add(change)
    return fires, left_out


@lru_cache(maxsize=2)
def _walk(change: datetime, zone: ZoneInfo) -> list[tuple[datetime, datetime]]:
    around = _minutes(change - timedelta(days=1), change + timedelta(days=1))
    return [(moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)) for moment in around]


def _minutes(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += MINUTE


def _instant(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND


def _compare(name: str, change: datetime, minute: str, hour: str, gap: str, fold: str) -> None:
    fires, left_out = _expected(minute, hour, change, ZoneInfo(name), gap, fold)
    schedule = read_schedule({"cron": f"{minute} {hour} * * *", "timezone": name, "dst": {"gap": gap, "fold": fold}})
    start, end = _instant(change - timedelta(days=1)), _instant(change + timedelta(days=1))
    ours = list(between(schedule, start, end, anchor=0, limit=5_000))
    assert {each.nominal for each in ours if each.fires} == {_instant(moment) for moment in fires}
    assert {each.nominal for each in ours if not each.fires} == {_instant(moment) for moment in left_out}
    assert [each.nominal for each in ours] == sorted({each.nominal for each in ours})
    counts = count_between(schedule, start, end, anchor=0)
    assert (counts.fires, counts.gap, counts.closed) == (len(fires), len(left_out), 0)
    backwards = []
    found = previous_before(schedule, end, anchor=0)
    while found is not None and found.nominal >= start:
        backwards.append(found)
        found = previous_before(schedule, found.nominal, anchor=0)
    assert backwards == ours[::-1]


def _cases(name: str) -> Iterator[tuple[datetime, str, str, str, str]]:
    random = Random(name)
    changes = _changes(name)
    for change in changes if WHOLE else changes[:4]:
        fixed = FIXED if WHOLE else random.sample(FIXED, 5)
        for minute, hour in fixed:
            yield change, minute, hour, random.choice(GAPS), random.choice(FOLDS)
        yield change, *random.choice(ELAPSED), "after", "first"


@pytest.mark.parametrize("name", sorted(available_timezones()) if WHOLE else SAMPLE)
def test_every_zone_as_a_walk_over_its_minutes(name: str) -> None:
    if name in ("localtime", "Factory"):
        return
    for change, minute, hour, gap, fold in _cases(name):
        _compare(name, change, minute, hour, gap, fold)


@pytest.mark.parametrize("name", SAMPLE)
def test_all_changes_of_a_zone_are_found(name: str) -> None:
    zone = read_zone(name, "/timezone")
    start, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
    found = zone.changes(int(start.timestamp()), int(end.timestamp()))
    assert [each.at for each in found] == [int(change.timestamp()) for change in _changes(name)]


def _local(name: str, schedule_fields: Mapping[str, object], start: datetime, count: int) -> list[str]:
    schedule = read_schedule({"timezone": name, **schedule_fields})
    instant, found = _instant(start), []
    for _ in range(count):
        occurrence = next_after(schedule, instant, anchor=0)
        assert occurrence is not None
        instant = occurrence.nominal
        local = datetime.fromtimestamp(instant / SECOND, ZoneInfo(name)).strftime("%d %H:%M%z")
        found.append(" ".join((local, *occurrence.marks, *(() if occurrence.fires else ("left out",)))))
    return found


def test_berlin_by_example() -> None:
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    cron: dict[str, object] = {"cron": "30 2 * * *"}
    assert _local("Europe/Berlin", cron, spring, 2) == ["29 03:00+0200 dst_gap", "30 02:30+0200"]
    assert _local("Europe/Berlin", cron | {"dst": {"gap": "before"}}, spring, 1) == ["29 01:30+0100 dst_gap"]
    assert _local("Europe/Berlin", cron | {"dst": {"gap": "skip"}}, spring, 1) == ["29 03:00+0200 dst_gap left out"]
    assert _local("Europe/Berlin", cron, autumn, 2) == ["25 02:30+0200 dst_fold", "26 02:30+0100"]
    assert _local("Europe/Berlin", cron | {"dst": {"fold": "second"}}, autumn, 1) == ["25 02:30+0100 dst_fold"]
    assert _local("Europe/Berlin", cron | {"dst": {"fold": "both"}}, autumn, 2) == [
        "25 02:30+0200 dst_fold",
        "25 02:30+0100 dst_fold",
    ]


def test_a_whole_day_that_did_not_exist() -> None:
    start = datetime(2011, 12, 30, 0, tzinfo=UTC)
    assert _local("Pacific/Apia", {"cron": "0 9 * * *"}, start, 2) == ["31 00:00+1400 dst_gap", "31 09:00+1400"]


def test_a_gap_that_swallows_every_instant_gives_up() -> None:
    schedule = read_schedule({"cron": "*/59 2 * 3 SUNL", "timezone": "Europe/Berlin"})
    assert next_after(schedule, 0, anchor=0, kind=Kind.FIRES) is not None  # before Berlin had summer time
    assert next_after(schedule, _instant(datetime(2026, 1, 1, tzinfo=UTC)), anchor=0) is None
