"""From a request to the row that the store is handed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring.client.submission import Request, prepare, prepare_all
from mainspring.core.errors import InvalidInput, TooLarge
from mainspring.core.ids import uuid7
from mainspring.core.model import HOUR, MINUTE, SECOND, Kind, Lane
from mainspring.core.times import read_instant

NOW = read_instant("2026-12-01T10:00:00Z", "")
ID = uuid7(NOW, b"0123456789")


def test_an_immediate_job_has_no_instants() -> None:
    job = prepare(Request({"task": "t", "queue": "q", "expires_in": "1h"}), ID, NOW, namespace="n", created_by="me")
    assert (job.kind, job.next_at, job.scheduled_at, job.lane) == (Kind.IMMEDIATE, None, None, Lane("n", "q", "t"))
    assert (job.expires_at, job.created_by, job.reason) == (NOW + HOUR, "me", None)


def test_a_delayed_job_expires_from_its_time() -> None:
    job = prepare(Request({"task": "t", "delay": "5m", "expires_in": "1m"}), ID, NOW)
    assert (job.kind, job.next_at, job.scheduled_at) == (Kind.DELAYED, NOW + 5 * MINUTE, NOW + 5 * MINUTE)
    assert job.expires_at == NOW + 6 * MINUTE


def test_a_time_that_has_passed_runs_now_and_expires_from_acceptance() -> None:
    job = prepare(Request({"task": "t", "at": "2026-12-01T09:00:00Z", "expires_in": "1m"}), ID, NOW)
    assert (job.kind, job.next_at, job.scheduled_at) == (Kind.IMMEDIATE, None, NOW - HOUR)
    assert (job.reason, job.expires_at) == ("at_in_past", NOW + MINUTE)


def test_no_delay_is_now() -> None:
    job = prepare(Request({"task": "t", "delay": 0}), ID, NOW)
    assert (job.kind, job.next_at, job.scheduled_at, job.reason) == (Kind.IMMEDIATE, None, None, None)


def test_intervals_count_from_the_instant_in_the_id() -> None:
    later = NOW + 3
    job = prepare(Request({"task": "t", "every": "5m"}), ID, later)
    assert (job.kind, job.next_at, job.expires_at) == (Kind.RECURRING, NOW + 5 * MINUTE, None)


def test_every_with_a_start_fires_first_at_it() -> None:
    job = prepare(Request({"task": "t", "every": "5m", "start_at": "2026-12-01T11:00:00Z"}), ID, NOW)
    assert job.next_at == NOW + HOUR


def test_jitter_moves_what_is_due_but_not_its_name() -> None:
    job = prepare(Request({"task": "t", "cron": "0 * * * *", "jitter": "10m"}), ID, NOW)
    assert job.next_at == NOW + HOUR
    assert job.scheduled_at is not None
    assert NOW + HOUR <= job.scheduled_at < NOW + HOUR + 10 * MINUTE
    assert (
        prepare(Request({"task": "t", "cron": "0 * * * *", "jitter": "10m"}), ID, NOW).scheduled_at == job.scheduled_at
    )


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"cron": "0 0 31 2 *"}, "/cron"),
        ({"every": "5m", "end_at": "2026-12-01T09:00:00Z"}, "/end_at"),
        ({"every": "5m", "end_at": "2026-12-01T10:01:00Z"}, "/end_at"),
        ({"at": datetime(2026, 12, 1)}, "/at"),
    ],
)
def test_what_never_fires_or_names_no_instant_is_refused(fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(Request({"task": "t", **fields}), ID, NOW)
    assert caught.value.problems[0].pointer == pointer


def test_values_of_python_are_taken() -> None:
    job = prepare(Request({"task": "t", "at": datetime(2026, 12, 1, 11, tzinfo=UTC)}, payload=b'{"a":1}'), ID, NOW)
    assert (job.next_at, job.payload) == (NOW + HOUR, b'{"a":1}')


def test_a_batch_is_all_or_everything_that_is_wrong() -> None:
    ids = [uuid7(NOW, bytes([index] * 10)) for index in range(3)]
    fine = prepare_all([Request({"task": "t"})] * 3, ids, NOW)
    assert [job.id for job in fine] == ids
    wrong = [Request({"task": 1}), Request({"task": "t"}), Request({"task": "t", "delay": "x", "priority": -1})]
    with pytest.raises(InvalidInput) as caught:
        prepare_all(wrong, ids, NOW)
    assert [problem.pointer for problem in caught.value.problems] == ["/0/task", "/2/delay", "/2/priority"]
    with pytest.raises(TooLarge, match="/1/payload"):
        prepare_all([Request({"task": "t"}), Request({"task": "t", "payload": {"a": "x" * 300_000}})], ids[:2], NOW)


def test_a_batch_with_endless_errors_names_a_thousand() -> None:
    ids = [uuid7(NOW, index.to_bytes(10, "big")) for index in range(3000)]
    with pytest.raises(InvalidInput) as caught:
        prepare_all([Request({"task": 1})] * 3000, ids, NOW)
    assert len(caught.value.problems) == 1001
    assert "2000 further" in caught.value.problems[-1].detail


def test_durations_are_whole_microseconds() -> None:
    assert prepare(Request({"task": "t", "delay": 0.0000015}), ID, NOW).next_at in (NOW + 1, NOW + 2)
    assert prepare(Request({"task": "t", "delay": 1.5}), ID, NOW).next_at == NOW + 3 * SECOND // 2
