"""Our cron engine beside cronsim, expression by expression, forwards and backwards.

Where the two differ, and why:

1. A range of one number with a step, `5-5/10`. cronsim forgets that it was a range and goes on to
   the end of the field (5, 15, 25, …). Debian's cron and we stay in the range: 5. Not drawn here.
2. A step longer than its field, `*/90` in minutes. cronsim takes it as `0`; we refuse it, because
   whoever writes it means every 90 minutes. Not drawn here.
3. A step after `L` or `LW`. cronsim ignores it; we refuse it. Not drawn here.
4. Six fields in a zone. cronsim follows elapsed time for all of them; ours follow the job's `dst`
   as five fields do. Six fields are compared in UTC.
5. Backwards through a clock change. cronsim moves wall times by its own rule when it goes backwards
   and so names other instants than it does forwards; ours names the same in both directions. Backwards
   is compared in UTC, and both of our directions with each other in zones.
6. Forwards through a change of half an hour, or at midnight, with a star in the minute or hour field.
   cronsim steps in whole hours and so lands in the middle of the first hour after Lord Howe's changes
   (`* 3` begins at 03:30), and it takes midnight for the instant that follows a gap at midnight, so that
   it runs at a wall time the expression does not name, or passes over one that it names. There we hold
   ourselves against a walk over the minutes instead.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from mainspring.core.cron import Cron
from mainspring.core.cron_parse import CronFields
from mainspring.core.errors import InvalidInput
from mainspring.core.model import SECOND
from mainspring.core.schedule import Schedule, next_after, previous_before, read_schedule
from tests.unit.core.cron_samples import expression

EXPRESSIONS = int(os.environ.get("MAINSPRING_TEST_CRON", "1500"))
"""`MAINSPRING_TEST_CRON=100000` compares as many."""

CHANGES = {
    "Europe/Berlin": (datetime(2026, 3, 28), datetime(2026, 10, 24)),
    "America/New_York": (datetime(2026, 3, 7), datetime(2026, 10, 31)),
    "Australia/Lord_Howe": (datetime(2026, 4, 4), datetime(2026, 10, 3)),
    "America/Sao_Paulo": (datetime(2017, 10, 14), datetime(2018, 2, 16)),
    "Asia/Kolkata": (datetime(2026, 1, 1),),
}
ODD_CHANGES = ("Australia/Lord_Howe", "America/Sao_Paulo")


def _schedule(text: str, zone: str, *, seconds: bool) -> Schedule | None:
    try:
        return read_schedule({"cron": text, "timezone": zone, "dialect": "seconds" if seconds else None})
    except InvalidInput as refused:
        problem = str(refused)
    assert "never fires" in problem, (text, problem)
    return None


def _ours(schedule: Schedule, start: datetime, count: int, *, reverse: bool) -> list[datetime]:
    instant = int(start.timestamp()) * SECOND
    found = []
    for _ in range(count):
        occurrence = (previous_before if reverse else next_after)(schedule, instant, anchor=0)
        if occurrence is None:
            break
        instant = occurrence.nominal
        found.append(datetime.fromtimestamp(instant // SECOND, UTC))
    return found


def _theirs(text: str, start: datetime, count: int, *, reverse: bool) -> list[datetime]:
    simulated = CronSim(text, start, reverse=reverse)
    return [moment.astimezone(UTC) for moment, _ in zip(simulated, range(count), strict=False)]


@pytest.mark.parametrize("reverse", [False, True])
def test_in_utc_as_cronsim(reverse: bool) -> None:
    random = Random(20261119)
    compared = 0
    for _ in range(EXPRESSIONS):
        seconds = random.random() < 0.15
        text = expression(random, seconds=seconds)
        start = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(40 * 365 * 86_400))
        schedule = _schedule(text, "UTC", seconds=seconds)
        if schedule is None:
            _never_fires_for_cronsim_either(text, start)
            continue
        assert _ours(schedule, start, 3, reverse=reverse) == _theirs(text, start, 3, reverse=reverse), (text, start)
        compared += 1
    assert compared > EXPRESSIONS * 0.9


def test_through_clock_changes_as_cronsim() -> None:
    random = Random(20261120)
    differing = 0
    for _ in range(EXPRESSIONS):
        text = _often(random)
        zone = random.choice(sorted(CHANGES))
        minutes = timedelta(minutes=random.randrange(2 * 1440))
        start = (random.choice(CHANGES[zone]) + minutes).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        schedule = _schedule(text, zone, seconds=False)
        if schedule is None:
            continue
        ours = _ours(schedule, start, 6, reverse=False)
        if ours != _theirs(text, start.astimezone(ZoneInfo(zone)), 6, reverse=False):
            assert zone in ODD_CHANGES
            assert schedule.crons[0].elapsed
            assert ours == _walked(schedule.crons[0].fields, ZoneInfo(zone), start, ours[-1]), (text, zone, start)
            differing += 1
        if ours:
            assert _ours(schedule, ours[-1] + timedelta(seconds=1), len(ours), reverse=True) == ours[::-1]
    assert differing < EXPRESSIONS * 0.02


def _often(random: Random) -> str:
    """Expressions that fire near clock changes more often than chance has it."""
    fields = expression(random).split()
    if random.random() < 0.7:
        fields[2:] = ["*"] * 3
    if random.random() < 0.5:
        fields[1] = random.choice(["0", "1", "2", "3", "0-3", "1,2", "*/2", "1-4", "2/3"])
    return " ".join(fields)


def _walked(fields: CronFields, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Each real minute whose local time matches, by looking at every one of them."""
    dates: dict[date, bool] = {}
    cron, found = Cron(fields), []
    moment = start.replace(second=0) + timedelta(minutes=1)
    while moment <= end:
        local = moment.astimezone(zone)
        if local.date() not in dates:
            dates[local.date()] = cron.has_day((local.date() - date(1970, 1, 1)).days)
        if dates[local.date()] and local.hour in fields.hours and local.minute in fields.minutes:
            found.append(moment)
        moment += timedelta(minutes=1)
    return found


def _never_fires_for_cronsim_either(text: str, start: datetime) -> None:
    try:
        simulated = CronSim(text, start)
    except CronSimError:
        return
    assert next(simulated, None) is None, text
