"""The near future: what is due in which order, and what becomes of rows that are older or newer than what is known."""

from __future__ import annotations

from uuid import UUID

from mainspring.core.model import Instant, Job, JobState, Kind, Lane
from mainspring.scheduler.near import Near

LANE = Lane("default", "default", "work")


def job(
    number: int,
    at: Instant,
    *,
    priority: int = 50,
    kind: Kind = Kind.DELAYED,
    version: int = 1,
    through: Instant = 0,
) -> Job:
    state = JobState.ACTIVE if kind is Kind.RECURRING else JobState.SCHEDULED
    return Job(UUID(int=number), LANE, kind, state, priority, b"", None, None, at, at, through, version, 0, 0, 0, None)


def near(*jobs: Job) -> Near:
    made = Near()
    made.add(jobs)
    return made


def taken(from_here: Near, now: Instant, limit: int = 100) -> list[int]:
    return [one.id.int for one in from_here.take_due(now, limit)]


def test_the_soonest_comes_first_and_of_one_instant_the_highest_priority() -> None:
    waiting = near(job(1, 20), job(2, 10, priority=10), job(3, 10, priority=90), job(4, 30))
    assert waiting.next_at == 10
    assert taken(waiting, 20) == [3, 2, 1]
    assert (waiting.next_at, len(waiting)) == (30, 1)


def test_a_batch_has_its_limit_and_leaves_the_rest() -> None:
    waiting = near(*(job(number, 10) for number in range(5)))
    assert taken(waiting, 10, limit=3) == [0, 1, 2]
    assert taken(waiting, 10, limit=3) == [3, 4]
    assert waiting.next_at is None


def test_a_batch_is_of_one_sort_and_the_one_that_waited_longest() -> None:
    waiting = near(job(1, 10), job(2, 9, kind=Kind.RECURRING), job(3, 11), job(4, 12, kind=Kind.RECURRING))
    assert taken(waiting, 20) == [2, 4]
    assert taken(waiting, 20) == [1, 3]


def test_a_job_that_moved_is_due_once_at_its_new_instant() -> None:
    waiting = near(job(1, 10))
    waiting.add([job(1, 30, version=2)])
    assert taken(waiting, 20) == []
    waiting.add([job(1, 15, version=3)])
    assert taken(waiting, 40) == [1]
    assert taken(waiting, 40) == []


def test_a_row_that_was_read_before_the_last_firing_changes_nothing() -> None:
    waiting = near(job(1, 20, kind=Kind.RECURRING, through=10))
    waiting.add([job(1, 10, kind=Kind.RECURRING, through=0)])
    assert waiting.next_at == 20


def test_what_a_whole_look_does_not_meet_is_gone() -> None:
    waiting = near(job(1, 10), job(2, 20, kind=Kind.RECURRING, through=10))
    waiting.begin_whole()
    waiting.add([job(2, 10, kind=Kind.RECURRING, through=0), job(3, 30)])
    waiting.end_whole()
    assert UUID(int=1) not in waiting
    assert (waiting.next_at, len(waiting)) == (20, 2)
