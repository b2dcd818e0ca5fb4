"""Filters, bounds and cursors as callers write them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.client.reading import (
    read_cursor,
    read_id,
    read_job_filter,
    read_limit,
    read_page,
    read_run_filter,
    write_cursor,
)
from mainspring.core.errors import InvalidInput, NotFound
from mainspring.core.model import DAY, Kind

NOW = 1_800_000_000_000_000
ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


@given(st.uuids(), st.sampled_from(["jobs", "runs", "dead"]))
def test_a_cursor_leads_back_to_where_it_was_made(identity: UUID, kind: str) -> None:
    cursor = write_cursor(kind, identity)
    assert read_cursor(cursor, kind) == identity
    with pytest.raises(InvalidInput):
        read_cursor(cursor, kind + "x")


@given(st.text(max_size=80) | st.none() | st.integers())
def test_any_other_text_is_no_cursor(text: object) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        read_cursor(text, "jobs")


@pytest.mark.parametrize("value", [0, 1001, -1, True, "x", "1.5", "", "٣", None, 2.0, "0010000000000"])
def test_limits_have_bounds(value: object) -> None:
    with pytest.raises(InvalidInput):
        read_limit(value)


@pytest.mark.parametrize("value", [1, 1000, "1", "1000", "007"])
def test_limits_within_them(value: object) -> None:
    assert read_limit(value) == int(str(value))


def test_a_page_names_all_that_is_wrong() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_page({"limit": 0, "cursor": "x"}, "jobs")
    assert {problem.pointer for problem in caught.value.problems} == {"/limit", "/cursor"}
    assert read_page({}, "jobs").limit == 50


@pytest.mark.parametrize("text", ["", "x", str(ID)[:-1], "{" + str(ID) + "}", f"urn:uuid:{ID}", ID.hex, "../../x"])
def test_what_is_no_id_is_the_id_of_nothing(text: str) -> None:
    with pytest.raises(NotFound):
        read_id(text, "job")
    assert read_id(str(ID).upper(), "job") == ID


def test_completed_jobs_are_left_out_after_a_day_unless_dated() -> None:
    assert read_job_filter({}, NOW).ended_since == NOW - DAY
    assert read_job_filter({"status": "completed"}, NOW).ended_since == NOW - DAY
    for dated in ({"key": "k"}, {"created_after": "2026-01-01T00:00:00Z"}, {"next_before": "2026-01-01T00:00:00Z"}):
        assert read_job_filter(dated, NOW).ended_since is None


def test_filters_of_jobs() -> None:
    where = read_job_filter(
        {"status": ["active,paused", "held"], "kind": "recurring", "payload.a.b": "5", "q": "x"}, NOW
    )
    assert where.status == ("active", "paused", "held")
    assert (where.kind, where.payload, where.prefix) == (Kind.RECURRING, (("a.b", "5"),), "x")


def test_filters_of_runs() -> None:
    where = read_run_filter({"from": "1970-01-01T00:00:01Z", "job_id": str(ID), "worker": ID}, after=ID)
    assert (where.start, where.job_id, where.worker, where.after_id) == (1_000_000, ID, ID, ID)


def test_everything_wrong_with_filters_is_said() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_job_filter({"status": "done", "kind": 5, "sort": "x", "created_after": "now", "task": 5}, NOW)
    assert {problem.pointer for problem in caught.value.problems} == {
        "/status",
        "/kind",
        "/sort",
        "/created_after",
        "/task",
    }
    with pytest.raises(InvalidInput):
        read_job_filter({"kind": "recurring,delayed"}, NOW)
