from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from mainspring.core.firing import following_occurrence, max_runs_of, misfire_of, plan_firing
from mainspring.core.model import MINUTE, SECOND, Instant, Job, JobState, Kind, Lane

CREATED: Instant = 1_800_000_000 * SECOND


def recurring(fired_through: Instant = CREATED, runs_made: int = 0, **document: Any) -> Job:
    document = document or {"every": 60}
    return Job(
        id=UUID(int=7),
        lane=Lane("default", "default", "work"),
        kind=Kind.RECURRING,
        state=JobState.ACTIVE,
        priority=50,
        payload=b"{}",
        document=json.dumps(document),
        key=None,
        next_at=CREATED + MINUTE,
        scheduled_at=CREATED + MINUTE,
        fired_through=fired_through,
        version=3,
        runs_made=runs_made,
        created_at=CREATED,
        updated_at=CREATED,
        created_by=None,
    )


def one_time(at: Instant) -> Job:
    job = recurring()
    job.kind, job.state, job.document, job.next_at, job.scheduled_at = Kind.DELAYED, JobState.SCHEDULED, None, at, at
    return job


def test_before_its_instant_nothing_is_due() -> None:
    assert plan_firing(recurring(), CREATED + MINUTE - 1) is None
    assert plan_firing(one_time(CREATED + 5), CREATED + 4) is None


def test_at_its_instant_a_recurring_job_runs_and_moves_on() -> None:
    firing = plan_firing(recurring(), CREATED + MINUTE)
    assert firing is not None
    assert [run.nominal for run in firing.runs] == [CREATED + MINUTE]
    assert firing.fired_through == CREATED + MINUTE
    assert firing.next_at == firing.next_scheduled_at == CREATED + 2 * MINUTE
    assert firing.version == 3


def test_a_one_time_job_runs_however_late() -> None:
    firing = plan_firing(one_time(CREATED), CREATED + 1000 * MINUTE)
    assert firing is not None
    assert len(firing.runs) == 1
    assert firing.next_at is None


def test_an_outage_costs_one_catch_up_and_one_record() -> None:
    now = CREATED + 600 * MINUTE + 31 * SECOND
    firing = plan_firing(recurring(), now)
    assert firing is not None
    assert [run.catch_up for run in firing.runs] == [True]
    assert sum(skip.stands_for for skip in firing.skips) + len(firing.runs) == 600
    assert {skip.reason for skip in firing.skips} == {"misfire"}
    assert firing.next_at == CREATED + 601 * MINUTE


def test_the_policy_of_the_job_wins_over_that_of_the_house() -> None:
    now = CREATED + 600 * MINUTE + 31 * SECOND
    kept = plan_firing(recurring(every=60, misfire={"policy": "once"}), now, misfire="skip")
    dropped = plan_firing(recurring(every=60), now, misfire="skip")
    assert kept is not None
    assert dropped is not None
    assert (len(kept.runs), len(dropped.runs)) == (1, 0)


def test_what_fell_due_in_a_pause_is_one_record() -> None:
    firing = plan_firing(recurring(), CREATED + 10 * MINUTE, paused=True)
    assert firing is not None
    assert firing.runs == ()
    assert [(skip.reason, skip.stands_for) for skip in firing.skips] == [("paused", 10)]
    assert firing.next_at == CREATED + 11 * MINUTE


@pytest.mark.parametrize(("resume", "runs"), [("once", 1), ("all", 10)])
def test_resume_may_catch_up(resume: str, runs: int) -> None:
    firing = plan_firing(recurring(), CREATED + 10 * MINUTE + 45 * SECOND, paused=True, resume=resume)
    assert firing is not None
    assert len(firing.runs) == runs


def test_a_paused_one_time_job_is_not_fired() -> None:
    assert plan_firing(one_time(CREATED), CREATED + 1, paused=True) is None


def test_the_last_of_max_runs_finishes_the_job() -> None:
    firing = plan_firing(recurring(runs_made=4, every=60, max_runs=5), CREATED + MINUTE)
    assert firing is not None
    assert len(firing.runs) == 1
    assert firing.next_at is None


def test_the_end_of_the_schedule_finishes_the_job() -> None:
    from mainspring.core.times import utc_text

    firing = plan_firing(recurring(every=60, end_at=utc_text(CREATED + 90 * SECOND)), CREATED + MINUTE)
    assert firing is not None
    assert firing.next_at is None


def test_documents_are_read_once_and_rightly() -> None:
    assert misfire_of('{"misfire":{"policy":"all","window":"1h","limit":7}}').limit == 7
    assert misfire_of(None, "skip").policy == "skip"
    assert max_runs_of('{"max_runs":3}') == 3
    assert max_runs_of(None) is None
    following = following_occurrence(recurring(), CREATED)
    assert following is not None
    assert following.nominal == CREATED + MINUTE


def test_a_pause_skips_nothing_that_jitter_still_holds_back() -> None:
    """The instant of its minute has come, its own due time has not."""
    job = recurring(every=60, jitter=50)
    due = following_occurrence(job, CREATED)
    assert due is not None
    assert due.scheduled_at > due.nominal
    assert plan_firing(job, due.scheduled_at - 1, paused=True) is None
    firing = plan_firing(job, due.scheduled_at, paused=True)
    assert firing is not None
    assert [(skip.nominal, skip.stands_for) for skip in firing.skips] == [(due.nominal, 1)]


def test_of_a_long_pause_the_instant_that_jitter_holds_back_is_still_to_come() -> None:
    job = recurring(every=60, jitter=50)
    last = following_occurrence(job, CREATED + 9 * MINUTE)
    assert last is not None
    firing = plan_firing(job, last.scheduled_at - 1, paused=True)
    assert firing is not None
    assert [skip.stands_for for skip in firing.skips] == [9]
    assert (firing.fired_through, firing.next_at) == (last.nominal - 1, last.nominal)
