"""A schedule played through in advance: everything expected ran or has its reason."""

from __future__ import annotations

from time import process_time

import pytest

from mainspring.core.calendars import Calendar
from mainspring.core.errors import InvalidInput
from mainspring.core.misfire import Misfire
from mainspring.core.model import DAY, HOUR
from mainspring.core.rehearsal import rehearse
from mainspring.core.schedule import count_between, read_schedule
from mainspring.core.times import read_instant

START = read_instant("2026-01-01T00:00:00Z", "")
OUTAGES = [(START + 10 * DAY, START + 10 * DAY + 90 * 60_000_000), (START + 86 * DAY, START + 120 * DAY)]
CALENDARS = {"week": Calendar("week", days_off=frozenset({5, 6}))}


@pytest.mark.parametrize("policy", ["skip", "once", "all"])
@pytest.mark.parametrize(
    "document",
    [
        {"cron": "*/5 * * * *", "timezone": "Europe/Berlin"},
        {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst": {"gap": "skip"}, "calendar": {"name": "week"}},
        {"cron": "* * * * * *", "dialect": "seconds"},
        {"every": "7m"},
        {"every": "1h", "spread": "59m", "jitter": "30m"},
    ],
    ids=str,
)
def test_a_year_with_outages_is_conserved_and_quick(document: dict[str, object], policy: str) -> None:
    schedule = read_schedule(document)
    end = START + 365 * DAY
    before = process_time()
    played = rehearse(
        schedule, START, end, anchor=START, outages=OUTAGES, misfire=Misfire(policy, limit=5), calendars=CALENDARS
    )
    assert process_time() - before < 1
    counts = count_between(schedule, START, end, anchor=START, calendars=CALENDARS)
    assert played.expected == counts.fires + counts.gap + counts.closed
    assert played.ran + played.caught_up + played.skipped.get("misfire", 0) == counts.fires
    assert played.caught_up <= {"skip": 0, "once": 2, "all": 10}[policy]
    assert len(played.outages) == 2


def test_outages_out_of_order_are_refused() -> None:
    schedule = read_schedule({"every": "1h"})
    with pytest.raises(InvalidInput, match="/outages/1"):
        rehearse(schedule, START, START + DAY, anchor=START, outages=[(START, START + HOUR), (START, START + HOUR)])
