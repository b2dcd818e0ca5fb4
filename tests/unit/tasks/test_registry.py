"""The decorator's promises: one name one task, unknown options refused, a plain call stays a plain call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from mainspring.core.errors import InvalidInput, Problem
from mainspring.core.submission import NOT_OFFERED, read_submission
from mainspring.tasks.options import JOB_OPTIONS, read_options
from mainspring.tasks.registry import Registry
from mainspring.tasks.retry import Retry
from mainspring.tasks.submitter import JobHandle, Order, R


async def send(to: str, body: str = "") -> str:
    return to + body


def plain(number: int) -> int:
    return number + 1


@dataclass
class Handle:
    id: str

    async def result(self, timeout: float | None = None) -> str:
        return f"{self.id}{timeout}"

    def result_sync(self, timeout: float | None = None) -> str:
        return f"{self.id}{timeout}"


class Remembering:
    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes, dict[str, object]]] = []

    async def submit(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        return self.submit_sync(orders)

    def submit_sync(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]:
        self.seen += [(order.task.name, order.payload, dict(order.options)) for order in orders]
        return []


async def test_a_plain_call_stays_a_plain_call() -> None:
    registry = Registry()
    assert await registry.add(send)("a", "b") == "ab"
    assert registry.add(plain)(1) == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limits", [{"key": "a", "count": 1}]),
        ("fair", "tenant"),
        ("breaker", {"failures": 5}),
        ("unique", True),
        ("resources", {"gpu": 1}),
        ("after", ["a"]),
        ("region", "eu"),
        ("http", {"url": "https://example.org"}),
        ("command", {"argv": ["true"]}),
    ],
)
def test_what_is_not_offered_yet_is_refused_in_the_words_of_the_api(name: str, value: object) -> None:
    problem = Problem(f"/{name}", f"this server does not offer {NOT_OFFERED[name]} yet")
    with pytest.raises(InvalidInput) as at_decorator:
        Registry().add(send, name="send", **{name: value})
    with pytest.raises(InvalidInput) as at_options:
        Registry().add(send).options(**{name: value})
    with pytest.raises(InvalidInput) as at_submit:
        read_submission({"task": "send", name: value})
    assert at_decorator.value.problems == at_options.value.problems == (problem,)
    assert problem in at_submit.value.problems


def test_what_is_not_offered_may_be_said_to_be_absent() -> None:
    task = Registry().add(send, limits=[], region=None)
    assert task.name == "send"


def test_a_task_knows_its_name_runner_and_defaults() -> None:
    task = Registry().add(send, queue="mail", timeout=timedelta(seconds=30), retry=Retry(max_attempts=5, initial="1s"))
    info = task.info()
    assert (info.name, task.runner) == ("send", "async")
    assert json.loads(info.defaults or "") == {
        "queue": "mail",
        "timeout": 30.0,
        "retry": {"max_attempts": 5, "initial": "1s"},
    }


def test_two_of_one_name_are_refused() -> None:
    registry = Registry()
    registry.add(send)
    with pytest.raises(InvalidInput, match="two tasks are named 'send'"):
        registry.add(plain, name="send")


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'priority'"):
        Registry().add(send, prority=3)


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"timeout": "-5s"}, "/timeout"),
        ({"priority": 101}, "/priority"),
        ({"retry": {"max_attempts": 0}}, "/retry/max_attempts"),
        ({"on_lost": "shrug"}, "/on_lost"),
        ({"overlap": "never"}, "/overlap"),
        ({"runner": "thread"}, "/runner"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], pointer: str) -> None:
    runner = options.pop("runner", None)
    with pytest.raises(InvalidInput) as caught:
        Registry().add(send, name="send", runner=runner, **options)
    assert caught.value.problems[0].pointer == pointer


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidInput, match="name="):
        Registry().add(lambda: None)


def test_registry_finds_by_exact_name() -> None:
    registry = Registry()
    task = registry.add(send)
    assert registry.get("send") is task
    assert registry.get("os:system") is None
    assert registry.names() == ("send",)


async def test_submitting_goes_through_the_application() -> None:
    task = Registry().add(send)
    submitter = task.submitter = Remembering()
    await task.submit_many(["a", ("b", "c"), {"to": "d"}])
    await task.options(delay=timedelta(minutes=5)).options(priority=80).submit_many(["e"])
    task.options(at=datetime(2026, 1, 1, tzinfo=UTC)).submit_many_sync([("f",)])
    assert [payload for _, payload, _ in submitter.seen] == [
        b'{"to":"a"}', b'{"to":"b","body":"c"}', b'{"to":"d"}', b'{"to":"e"}', b'{"to":"f"}'
    ]  # fmt: skip
    assert [options for _, _, options in submitter.seen[3:]] == [
        {"delay": 300.0, "priority": 80},
        {"at": "2026-01-01T00:00:00.000Z"},
    ]


def test_wrong_arguments_among_many_are_found_before_anything_is_submitted() -> None:
    task = Registry().add(send)
    submitter = task.submitter = Remembering()
    with pytest.raises(InvalidInput) as caught:
        task.submit_many_sync(["a", ("b", 5)])
    assert caught.value.problems[0].pointer == "/1/payload/body"
    assert submitter.seen == []


@pytest.mark.parametrize(
    ("options", "pointer"),
    [({"delay": -1}, "/delay"), ({"at": datetime(2026, 1, 1)}, "/at"), ({"dealy": 1}, "/dealy")],
)
def test_options_of_a_submission_are_checked(options: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Registry().add(send).options(**options)
    assert caught.value.problems[0].pointer == pointer


def test_a_task_without_application_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"@app\.task"):
        Registry().add(send).submit_sync("a")


def test_a_misfire_policy_may_be_named_by_its_word() -> None:
    options = read_options({"cron": "0 9 * * *", "misfire": "all"}, JOB_OPTIONS, of="options()")
    assert options["misfire"] == {"policy": "all"}
