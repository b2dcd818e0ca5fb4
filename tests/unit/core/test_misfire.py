"""Late, misfired, caught up: held against a plain walk over every occurrence."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest

from mainspring.core.calendars import Calendar
from mainspring.core.misfire import Misfire, Verdict, catch_up, is_misfired
from mainspring.core.model import DAY, HOUR, MINUTE, SECOND
from mainspring.core.schedule import Occurrence, Schedule, between, next_after, read_schedule
from mainspring.core.times import read_instant

START = read_instant("2026-03-27T00:00:00Z", "")
CALENDARS = {"weekdays": Calendar("weekdays", days_off=frozenset({5, 6}))}
DOCUMENTS: list[dict[str, object]] = [
    {"cron": "* * * * *"},
    {"cron": "*/7 * * * *", "timezone": "Europe/Berlin"},
    {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst": {"gap": "skip"}},
    {"cron": ["0 9 * * *", "0,1 17 * * mon-fri"], "timezone": "America/New_York"},
    {"cron": "*/20 * * * * *", "dialect": "seconds"},
    {"cron": "0 */6 * * *", "calendar": {"name": "weekdays"}},
    {"cron": "0 9 * * *", "calendar": {"name": "weekdays", "roll": "next"}, "timezone": "Asia/Tokyo"},
    {"every": "90s"},
    {"every": "2500ms", "start_at": "2026-03-27T00:10:00Z"},
    {"every": "5h", "calendar": {"name": "weekdays"}},
    {"every": "10m", "jitter": "3m", "spread": "2m"},
    {"cron": "0 * * * *", "end_at": "2026-03-27T09:00:00Z"},
]


def _catch_up(schedule: Schedule, now: int, misfire: Misfire) -> tuple[Verdict, ...]:
    return catch_up(schedule, fired_through=START, now=now, anchor=START, misfire=misfire, calendars=CALENDARS)


def _expected(schedule: Schedule, now: int, misfire: Misfire) -> tuple[dict[int, bool], dict[str, int]]:
    """By walking: which instants run (and whether to catch up), and how many are skipped for each reason."""
    every = list(between(schedule, START + 1, now + 1, anchor=START, limit=100_000, calendars=CALENDARS))
    beyond = next_after(schedule, now, anchor=START, calendars=CALENDARS)
    following: list[Occurrence | None] = [*every[1:], beyond]
    due = [(each, after) for each, after in zip(every, following, strict=False) if each.scheduled_at <= now]
    late = [each for each, after in due if each.fires and not is_misfired(each, after, now)]
    missed = [each for each, after in due if each.fires and is_misfired(each, after, now)]
    if misfire.policy == "all":
        window = misfire.window
        wanted = [each for each in missed if window is None or now - each.scheduled_at <= window][-misfire.limit :]
    else:
        wanted = missed[-1:] if misfire.policy == "once" and not late else []
    runs = {each.nominal: False for each in late} | {each.nominal: True for each in wanted}
    reasons = ["calendar" if "calendar" in each.marks else "dst_gap" for each, _ in due if not each.fires]
    reasons += ["misfire"] * (len(missed) - len(wanted))
    return runs, {reason: reasons.count(reason) for reason in set(reasons)}


def _count(verdicts: tuple[Verdict, ...]) -> dict[str, int]:
    skipped: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.action == "skip":
            assert verdict.reason is not None
            skipped[verdict.reason] = skipped.get(verdict.reason, 0) + verdict.count
    return skipped


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_as_a_walk_over_every_occurrence(document: dict[str, object]) -> None:
    random = Random(str(document))
    schedule = read_schedule(document)
    for span in (MINUTE, MINUTE, HOUR, HOUR, 3 * HOUR, 3 * HOUR, 12 * HOUR, 3 * DAY, 5 * DAY):
        now = START + random.randrange(span)
        policy = random.choice(("skip", "once", "all"))
        misfire = Misfire(policy, window=random.choice((None, 2 * HOUR)), limit=random.choice((1, 3, 100)))
        verdicts = _catch_up(schedule, now, misfire)
        runs, skipped = _expected(schedule, now, misfire)
        assert {each.nominal: each.catch_up for each in verdicts if each.action == "run"} == runs
        assert _count(verdicts) == skipped
        ran = [each.nominal for each in verdicts if each.action == "run"]
        assert ran == sorted(ran)
        if verdicts:
            assert max(each.through for each in verdicts) <= now
            assert len({each.nominal for each in verdicts}) == len(verdicts)


def test_half_the_period_is_borne_between_two_and_sixty_seconds() -> None:
    for every, patience in (("1s", 2 * SECOND), ("10s", 5 * SECOND), ("1m", 30 * SECOND), ("1d", 60 * SECOND)):
        schedule = read_schedule({"every": every})
        first, second = list(between(schedule, START + 1, START + 3 * DAY, anchor=START, limit=2))
        assert not is_misfired(first, second, first.nominal + patience)
        assert is_misfired(first, second, first.nominal + patience + 1)
    last = Occurrence(START, START)
    assert is_misfired(last, None, START + 61 * SECOND)
    assert not is_misfired(last, None, START + 60 * SECOND)


def test_once_runs_the_newest_and_says_how_many_were_missed() -> None:
    schedule = read_schedule({"cron": "0 * * * *"})
    skipped, run = _catch_up(schedule, START + 10 * HOUR + 30 * MINUTE, Misfire("once"))
    assert (skipped.action, skipped.reason, skipped.count) == ("skip", "misfire", 9)
    assert (skipped.nominal, skipped.through) == (START + HOUR, START + 9 * HOUR)
    assert (run.action, run.nominal, run.catch_up, run.missed_before) == ("run", START + 10 * HOUR, True, 9)


def test_once_runs_nothing_beside_a_late_one() -> None:
    schedule = read_schedule({"cron": "0 * * * *"})
    skipped, run = _catch_up(schedule, START + 10 * HOUR + 59 * SECOND, Misfire("once"))
    assert (skipped.reason, skipped.count) == ("misfire", 9)
    assert (run.nominal, run.catch_up, run.missed_before) == (START + 10 * HOUR, False, 9)


def test_all_runs_the_newest_within_limit_and_window_oldest_first() -> None:
    schedule = read_schedule({"cron": "0 * * * *"})
    now = START + 10 * HOUR + 30 * MINUTE
    verdicts = _catch_up(schedule, now, Misfire("all", limit=3))
    assert [(each.action, each.nominal // HOUR - START // HOUR, each.count) for each in verdicts] == [
        ("skip", 1, 7),
        ("run", 8, 1),
        ("run", 9, 1),
        ("run", 10, 1),
    ]
    verdicts = _catch_up(schedule, now, Misfire("all", window=HOUR))
    assert [(each.action, each.count) for each in verdicts] == [("skip", 9), ("run", 1)]


def test_a_one_time_job_runs_however_late() -> None:
    (verdict,) = _catch_up(read_schedule({"at": "2026-03-28T00:00:00Z"}), START + 400 * DAY, Misfire("skip"))
    assert (verdict.action, verdict.catch_up) == ("run", False)


def test_nothing_is_due_before_its_time() -> None:
    schedule = read_schedule({"cron": "0 * * * *"})
    assert _catch_up(schedule, START + HOUR - 1, Misfire("all")) == ()
    assert len(_catch_up(schedule, START + HOUR, Misfire("all"))) == 1


def test_a_roll_onto_a_taken_day_is_one_run_and_skips() -> None:
    schedule = read_schedule({"cron": "0 9 * * *", "calendar": {"name": "weekdays", "roll": "next"}})
    week = list(between(schedule, START, START + 7 * DAY, anchor=START, limit=20, calendars=CALENDARS))
    assert [(each.fires, each.marks) for each in week] == [
        (True, ()),
        (False, ("calendar",)),
        (False, ("calendar",)),
        *[(True, ())] * 4,
    ]


@pytest.mark.parametrize(
    "document",
    [
        {"cron": "* * * * * *", "dialect": "seconds", "timezone": "Europe/Berlin"},
        {"cron": "* * * * *", "calendar": {"name": "weekdays", "roll": "nearest"}, "timezone": "Europe/Berlin"},
        {"every": "10ms"},
        {"every": "1s", "calendar": {"name": "weekdays"}},
    ],
    ids=str,
)
def test_an_outage_of_a_year_costs_little(document: dict[str, object]) -> None:
    schedule = read_schedule(document)
    before = process_time()
    verdicts = _catch_up(schedule, START + 365 * DAY, Misfire("all", limit=100))
    assert process_time() - before < 0.5
    assert sum(each.action == "run" and each.catch_up for each in verdicts) == 100
    assert len(verdicts) < 350
