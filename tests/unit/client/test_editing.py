"""What a change of a stored job comes to, decided without a store."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mainspring.client import editing
from mainspring.core.errors import Conflict, InvalidInput
from mainspring.core.ids import uuid7
from mainspring.core.model import HOUR, MINUTE, Job, JobState, JobView, Kind, Lane
from mainspring.core.times import read_instant

NOW = read_instant("2026-12-01T10:00:00Z", "")
ID = uuid7(NOW, b"0123456789")


def recurring(**document: Any) -> Job:
    document = document or {"every": "10m"}
    return Job(
        id=ID,
        lane=Lane("default", "default", "send"),
        kind=Kind.RECURRING,
        state=JobState.ACTIVE,
        priority=50,
        payload=b"{}",
        document=json.dumps(document, sort_keys=True, separators=(",", ":")),
        key=None,
        next_at=NOW + 10 * MINUTE,
        scheduled_at=NOW + 10 * MINUTE,
        fired_through=NOW,
        version=4,
        runs_made=0,
        created_at=NOW,
        updated_at=NOW,
        created_by=None,
    )


def delayed(**document: Any) -> Job:
    return replace(recurring(**(document or {"delay": "10m"})), kind=Kind.DELAYED, state=JobState.SCHEDULED)


def redefined(job: Job, changes: dict[str, object], now: int) -> Any:
    return editing.redefine(job, editing.merge(job, changes), now, None)


def test_a_change_of_the_schedule_fires_first_what_was_due_by_the_old_one() -> None:
    now = NOW + 11 * MINUTE
    edit = redefined(recurring(), {"every": "7m"}, now)
    assert [run.nominal for run in edit.firing.runs] == [NOW + 10 * MINUTE]
    assert (edit.fired_through, edit.next_at, edit.version) == (now, NOW + 14 * MINUTE, 4)
    assert edit.definition_changed


def test_a_change_of_anything_else_leaves_the_instants_alone() -> None:
    edit = redefined(recurring(), {"priority": 9, "timeout": "5s"}, NOW + MINUTE)
    assert (edit.firing, edit.fired_through, edit.next_at) == (None, None, NOW + 10 * MINUTE)
    assert (edit.priority, json.loads(edit.document)) == (9, {"every": "10m", "timeout": "5s"})


def test_the_next_instant_lies_after_what_was_laid_out_ahead() -> None:
    job = replace(recurring(), fired_through=NOW + 10 * MINUTE)
    edit = redefined(job, {"every": "2m"}, NOW + 9 * MINUTE)
    assert (edit.next_at, edit.fired_through) == (NOW + 12 * MINUTE, NOW + 10 * MINUTE)


def test_nothing_changed_is_no_edit() -> None:
    assert redefined(recurring(), {}, NOW) is None
    assert redefined(recurring(), {"priority": 50, "every": "10m"}, NOW) is None


def test_objects_are_merged_and_the_payload_is_replaced() -> None:
    job = replace(recurring(every="10m", retry={"max_attempts": 5}), payload=b'{"a":1,"b":2}')
    edit = redefined(job, {"retry": {"initial": "9s"}, "payload": {"a": 3}}, NOW)
    assert json.loads(edit.document)["retry"] == {"max_attempts": 5, "initial": "9s"}
    assert edit.payload == b'{"a":3}'


def test_a_bound_on_runs_below_what_was_made_finishes_the_job() -> None:
    edit = redefined(replace(recurring(), runs_made=5), {"max_runs": 3}, NOW)
    assert (edit.state, edit.next_at) == (JobState.FINISHED, None)


def test_taking_a_field_away_leaves_an_empty_document_and_no_expiry() -> None:
    job = replace(delayed(delay="10m", expires_in="1m"), expires_at=NOW + 11 * MINUTE)
    edit = redefined(job, {"expires_in": None}, NOW)
    assert edit.expires_at == editing.NEVER_EXPIRES
    assert json.loads(edit.document) == {"delay": "10m"}


def test_a_delay_said_again_counts_from_now() -> None:
    edit = redefined(delayed(), {"delay": "10m"}, NOW + MINUTE)
    assert edit.next_at == NOW + 11 * MINUTE
    assert redefined(delayed(), {"priority": 1}, NOW + MINUTE).next_at == NOW + 10 * MINUTE


def test_what_is_due_is_changed_no_more() -> None:
    for change in (
        lambda: redefined(delayed(), {"priority": 1}, NOW + HOUR),
        lambda: editing.pause(delayed(), NOW + HOUR, None),
    ):
        with pytest.raises(Conflict, match="becoming a run"):
            change()


def test_a_paused_job_that_is_past_its_time_can_still_be_changed() -> None:
    job = replace(delayed(), state=JobState.PAUSED)
    assert redefined(job, {"priority": 1}, NOW + HOUR).next_at == NOW + 10 * MINUTE
    assert editing.resume(job, NOW + HOUR, None).state is JobState.SCHEDULED


@pytest.mark.parametrize("changes", [{"delay": "5m"}, {"at": "2026-12-01T11:00:00Z"}])
def test_a_job_keeps_its_kind(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="cannot become"):
        redefined(recurring(), changes, NOW)


def test_pause_fires_what_was_due_and_resume_skips_what_was_not() -> None:
    paused = editing.pause(recurring(), NOW + 10 * MINUTE, None)
    assert (paused.state, len(paused.firing.runs if paused.firing else ()), paused.next_at) == (
        JobState.PAUSED,
        1,
        NOW + 20 * MINUTE,
    )
    job = replace(recurring(), state=JobState.PAUSED)
    resumed = editing.resume(job, NOW + 35 * MINUTE, None)
    assert resumed.firing is not None
    assert [(skip.reason, skip.stands_for) for skip in resumed.firing.skips] == [("paused", 3)]
    assert (resumed.state, resumed.next_at) == (JobState.ACTIVE, NOW + 40 * MINUTE)


def test_a_schedule_that_ended_during_the_pause_is_finished() -> None:
    job = replace(recurring(every="10m", end_at="2026-12-01T10:15:00.000Z"), state=JobState.PAUSED)
    assert editing.resume(job, NOW + HOUR, None).state is JobState.FINISHED


@pytest.mark.parametrize(
    ("job", "status", "says"),
    [
        (replace(recurring(), kind=Kind.IMMEDIATE), "queued", "queued"),
        (delayed(), "running", "running"),
        (replace(recurring(), state=JobState.CANCELLED), "cancelled", "cancelled"),
        (replace(recurring(), state=JobState.FINISHED), "finished", "finished"),
    ],
)
def test_the_refusal_says_the_state(job: Job, status: str, says: str) -> None:
    with pytest.raises(Conflict, match=says):
        editing.refuse_unless_changeable(JobView(job, status), "change")
