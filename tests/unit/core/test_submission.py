"""Every field of a job, right and wrong, and what the decorator and the defaults fill in."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.core.errors import InvalidInput, TooLarge
from mainspring.core.model import HOUR, SECOND, Kind
from mainspring.core.submission import DEFAULTS, NOT_OFFERED, read_submission


def problems_of(value: Any, defaults: dict[str, object] | None = None) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        read_submission(value, defaults)
    return {problem.pointer: problem.detail for problem in caught.value.problems}


def test_the_smallest_submission_runs_now_and_stores_no_document() -> None:
    read = read_submission({"task": "send"})
    assert (read.task, read.kind, read.queue, read.priority, read.payload) == (
        "send",
        Kind.IMMEDIATE,
        "default",
        50,
        b"{}",
    )
    assert read.text is None
    assert read.schedule is None


def test_the_document_holds_what_was_given_and_no_column() -> None:
    read = read_submission(
        {
            "task": "send",
            "queue": "mail",
            "priority": 80,
            "key": "k",
            "payload": {"a": 1},
            "timeout": "30s",
            "tags": ["x"],
        }
    )
    assert json.loads(read.text or "") == {"timeout": "30s", "tags": ["x"]}
    assert (read.queue, read.priority, read.key, read.payload) == ("mail", 80, "k", b'{"a":1}')


def test_durations_are_kept_as_given_and_instants_in_utc() -> None:
    read = read_submission({"task": "t", "at": "2030-01-01T02:00:00+02:00", "expires_in": 90, "timeout": "PT5M"})
    assert read.document == {"at": "2030-01-01T00:00:00.000Z", "expires_in": 90, "timeout": "PT5M"}
    assert (read.kind, read.expires_in) == (Kind.DELAYED, 90 * SECOND)


def test_python_values_are_turned_into_text() -> None:
    read = read_submission({"task": "t", "at": datetime(2030, 1, 1, tzinfo=UTC), "timeout": timedelta(hours=1)})
    assert read.document == {"at": "2030-01-01T00:00:00.000Z", "timeout": "1h"}


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ({"at": "2030-01-01T00:00:00Z"}, Kind.DELAYED),
        ({"delay": "24h"}, Kind.DELAYED),
        ({"delay": 0}, Kind.DELAYED),
        ({"cron": "0 9 * * *", "timezone": "America/New_York"}, Kind.RECURRING),
        ({"every": "5m"}, Kind.RECURRING),
    ],
)
def test_when(when: dict[str, object], kind: Kind) -> None:
    read = read_submission({"task": "t", **when})
    assert read.kind is kind
    assert read.schedule is not None
    assert read.schedule.recurring is (kind is Kind.RECURRING)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"task": 5}, "/task"),
        ({"task": ""}, "/task"),
        ({"task": " t"}, "/task"),
        ({"task": "a\nb"}, "/task"),
        ({"task": "a\x00b"}, "/task"),
        ({"task": "\ud800"}, "/task"),
        ({"task": "x" * 257}, "/task"),
        ({}, "/task"),
        ({"task": None}, "/task"),
        ({"task": "t", "queue": None}, "/queue"),
        ({"task": "t", "queue": 1}, "/queue"),
        ({"task": "t", "priority": "high"}, "/priority"),
        ({"task": "t", "priority": 101}, "/priority"),
        ({"task": "t", "priority": -1}, "/priority"),
        ({"task": "t", "priority": True}, "/priority"),
        ({"task": "t", "priority": 5.5}, "/priority"),
        ({"task": "t", "payload": "x"}, "/payload"),
        ({"task": "t", "payload": None}, "/payload"),
        ({"task": "t", "payload": {"a": math.nan}}, "/payload"),
        ({"task": "t", "payload": {"a": "\ud800"}}, "/payload"),
        ({"task": "t", "payload": {"a": "\x00"}}, "/payload"),
        ({"task": "t", "payload": {"a": 10**5000}}, "/payload"),
        ({"task": "t", "payload": {"a": object()}}, "/payload"),
        ({"task": "t", "name": 1}, "/name"),
        ({"task": "t", "key": ""}, "/key"),
        ({"task": "t", "at": "2030-01-01T00:00:00"}, "/at"),
        ({"task": "t", "at": 5}, "/at"),
        ({"task": "t", "at": "9999-12-31T23:59:59-12:00"}, "/at"),
        ({"task": "t", "at": "2030-02-30T00:00:00Z"}, "/at"),
        ({"task": "t", "delay": "-5s"}, "/delay"),
        ({"task": "t", "delay": -5}, "/delay"),
        ({"task": "t", "delay": "soon"}, "/delay"),
        ({"task": "t", "cron": "61 * * * *"}, "/cron"),
        ({"task": "t", "cron": 5}, "/cron"),
        ({"task": "t", "cron": ["* * * * *", 7]}, "/cron/1"),
        ({"task": "t", "cron": "* * * * *", "timezone": "Europe/Belrin"}, "/timezone"),
        ({"task": "t", "timezone": "../../etc/passwd"}, "/timezone"),
        ({"task": "t", "every": 0}, "/every"),
        ({"task": "t", "every": "1ms"}, "/every"),
        ({"task": "t", "at": "2030-01-01T00:00:00Z", "cron": "* * * * *"}, "/cron"),
        ({"task": "t", "delay": 1, "every": 1}, "/every"),
        ({"task": "t", "cron": "* * * * *", "dst": {"gap": "later"}}, "/dst/gap"),
        ({"task": "t", "cron": "* * * * *", "dst": {"gaps": "after"}}, "/dst/gaps"),
        ({"task": "t", "every": 5, "misfire": "once"}, "/misfire"),
        ({"task": "t", "every": 5, "misfire": {"policy": "twice"}}, "/misfire/policy"),
        ({"task": "t", "every": 5, "misfire": {"limit": 0}}, "/misfire/limit"),
        ({"task": "t", "every": 5, "max_runs": 0}, "/max_runs"),
        ({"task": "t", "misfire": {"policy": "all"}}, "/misfire"),
        ({"task": "t", "max_runs": 3}, "/max_runs"),
        ({"task": "t", "overlap": "maybe"}, "/overlap"),
        ({"task": "t", "timeout": 0}, "/timeout"),
        ({"task": "t", "timeout": "forever"}, "/timeout"),
        ({"task": "t", "cancel_grace": None}, "/cancel_grace"),
        ({"task": "t", "retry": 3}, "/retry"),
        ({"task": "t", "retry": {"max_attempts": 0}}, "/retry/max_attempts"),
        ({"task": "t", "retry": {"attempts": 3}}, "/retry/attempts"),
        ({"task": "t", "retry": {"jitter": 2}}, "/retry/jitter"),
        ({"task": "t", "on_lost": "panic"}, "/on_lost"),
        ({"task": "t", "expires_in": 0}, "/expires_in"),
        ({"task": "t", "tags": "x"}, "/tags"),
        ({"task": "t", "tags": ["ok", 5]}, "/tags/1"),
        ({"task": "t", "metadata": []}, "/metadata"),
        ({"task": "t", "metadata": {"a": "\x00"}}, "/metadata"),
        ({"task": "t", "status": "completed"}, "/status"),
        ({"task": "t", "fence": 1}, "/fence"),
        ({"task": "t", "namespace": "other"}, "/namespace"),
        ({"task": "t", "created_by": "me"}, "/created_by"),
        ({"task": "t", "a/b~c": 1}, "/a~1b~0c"),
        ([], ""),
        ("task", ""),
    ],
)
def test_wrong_input_names_the_field(wrong: object, pointer: str) -> None:
    assert pointer in problems_of(wrong)


def test_everything_wrong_is_said_at_once() -> None:
    found = problems_of(
        {"task": 1, "priority": 200, "retry": {"max_attempts": 0, "jitter": 9}, "cron": "x", "sprocket": 1}
    )
    assert set(found) == {"/task", "/priority", "/retry/max_attempts", "/retry/jitter", "/cron", "/sprocket"}


def test_a_slip_gets_the_nearest_name() -> None:
    assert 'did you mean "timeout"?' in problems_of({"task": "t", "timout": 5})["/timout"]
    assert 'did you mean "queue_one"?' in problems_of({"task": "t", "overlap": "queue-one"})["/overlap"]


def test_a_hundred_thousand_unknown_fields_are_refused_in_few_words() -> None:
    found = problems_of({"task": "t"} | {f"field{number}": 1 for number in range(100_000)})
    assert len(found) <= 101


@pytest.mark.parametrize("name", sorted(NOT_OFFERED))
def test_what_is_not_built_yet_is_refused_and_said_so(name: str) -> None:
    what = {} if name in ("http", "command") else {"task": "t"}
    found = problems_of({**what, name: {"x": 1}})
    assert "does not offer" in found[f"/{name}"]


@pytest.mark.parametrize("name", sorted(NOT_OFFERED))
def test_saying_nothing_about_it_is_accepted(name: str) -> None:
    assert read_submission({"task": "t", name: None}).document == {}


def test_exactly_one_says_what() -> None:
    assert "exactly one" in problems_of({"task": "t", "http": {"url": "https://example.com"}})["/http"]


def test_what_readers_are_shown_can_be_submitted_again() -> None:
    shown = {name: value for name, value in DEFAULTS.items() if name != "task"}
    assert read_submission({**shown, "task": "t"}).kind is Kind.IMMEDIATE
    recurring = {**shown, "task": "t", "cron": "0 9 * * *"}
    assert read_submission(recurring).kind is Kind.RECURRING


def test_timeout_null_means_none_and_is_kept() -> None:
    assert read_submission({"task": "t", "timeout": None}).document == {"timeout": None}


def test_the_decorator_fills_in_what_was_left_out() -> None:
    defaults = {
        "queue": "mail",
        "priority": 70,
        "retry": {"max_attempts": 5, "initial": "1s"},
        "timeout": "9s",
        "misfire": {"policy": "all"},
        "from_a_newer_version": 1,
    }
    read = read_submission({"task": "t", "priority": 10, "retry": {"max_attempts": 2}}, defaults)
    assert (read.queue, read.priority) == ("mail", 10)
    assert read.document == {"retry": {"max_attempts": 2, "initial": "1s"}, "timeout": "9s"}
    assert read_submission({"task": "t", "every": 9}, defaults).document["misfire"] == {"policy": "all"}


def test_payload_bounds() -> None:
    room = 256 * 1024 - len('{"a":""}')
    assert len(read_submission({"task": "t", "payload": {"a": "x" * room}}).payload) == 256 * 1024
    with pytest.raises(TooLarge, match="256 KiB"):
        read_submission({"task": "t", "payload": {"a": "x" * (room + 1)}})


def test_payload_depth_is_bounded() -> None:
    def nested(depth: int) -> object:
        value: object = []
        for _ in range(depth - 1):
            value = [value]
        return value

    assert read_submission({"task": "t", "payload": nested(100)}).payload.startswith(b"[[")
    for depth in (101, 100_000):
        assert "deeper than 100" in problems_of({"task": "t", "payload": nested(depth)})["/payload"]


def test_a_backslash_before_u0000_is_no_nul() -> None:
    assert read_submission({"task": "t", "payload": {"a": "\\u0000"}}).payload == b'{"a":"\\\\u0000"}'


def test_an_encoded_payload_stands_for_the_payload() -> None:
    assert read_submission({"task": "t"}, encoded_payload=b'{"a":1}').payload == b'{"a":1}'


def test_big_numbers_survive() -> None:
    assert read_submission({"task": "t", "payload": {"n": 2**63 + 1}}).payload == b'{"n":9223372036854775809}'


def test_at_is_read_into_microseconds() -> None:
    assert read_submission({"task": "t", "at": "1970-01-01T01:00:00Z"}).at == HOUR


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(DEFAULTS)) | st.text(), _json))
def test_whatever_comes_is_read_or_refused(value: dict[str, object]) -> None:
    try:
        named = read_submission({"task": "t", **value}).task
    except InvalidInput as error:
        named = error.problems[0].detail
    assert named
