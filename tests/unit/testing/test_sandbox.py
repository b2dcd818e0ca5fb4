"""The sandbox for users' tests: inline runs, virtual time, assertions on what was submitted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring import Cancel, Discard, Mainspring, ResultTimeout, Retry, RetryLater, RunFailed, current_run
from mainspring.core.errors import MainspringError
from mainspring.tasks.context import RunContext
from mainspring.tasks.registry import CallNext
from mainspring.testing import Sandbox

app = Mainspring()
heard: list[str] = []


@app.task(queue="mail", retry=Retry(max_attempts=3, initial="10s", jitter=0))
async def send(to: str, body: str = "hi") -> str:
    run = current_run()
    run.progress(0.5, "half way")
    run.log.info("sending", to=to)
    if body == "bad":
        raise ValueError("no such mailbox")
    return f"{to}: {body}"


@app.task
def greet(name: str) -> str:
    send.submit_sync(name, "welcome")
    return name


@app.task
async def fickle() -> int:
    if current_run().attempt == 1:
        raise RetryLater("5m")
    return current_run().attempt


@app.task
def ended_by(how: str) -> None:
    raise Discard("no use") if how == "discard" else Cancel("not wanted")


@app.task
async def remind(at: datetime) -> None: ...


@app.task
async def forever() -> None:
    await forever.submit()


@app.cron("0 9 * * *", timezone="Europe/Berlin")
def daily() -> str:
    return current_run().scheduled_at.isoformat()


@app.on_start
async def begin() -> None:
    heard.append("start")


@app.on_stop
def end() -> None:
    heard.append("stop")


@app.middleware
async def around(run: RunContext, call_next: CallNext) -> object:
    heard.append(f"before {run.task}")
    return await call_next(run)


def test_nothing_happens_until_it_is_run() -> None:
    heard.clear()
    with Sandbox(app) as box:
        job = greet.submit_sync("ann@b.c")
        assert (job.status_sync(), box.submitted(send)) == ("queued", [])
        assert box.run_sync() == 2
        assert box.assert_submitted(send, to="ann@b.c").arguments == {"to": "ann@b.c", "body": "welcome"}
        assert [run["result"] for run in box.runs()] == ["ann@b.c", "ann@b.c: welcome"]
    assert heard == ["start", "before greet", "before send", "stop"]


async def test_a_result_is_waited_for_by_running_what_is_ready() -> None:
    async with Sandbox(app) as box:
        job = await send.submit("a@b.c")
        assert await job.result(timeout=10) == "a@b.c: hi"
        (run,) = box.runs(send, status="completed")
        assert (run["queue"], run["progress"]) == ("mail", {"value": 0.5, "message": "half way"})
        lines = (await box.client.run_logs(job.id))["items"]
        assert isinstance(lines, list)
        (line,) = lines
        assert (line["message"], line["fields"]) == ("sending", {"to": "a@b.c"})


def test_time_moves_only_by_hand_and_stops_at_what_is_due() -> None:
    with Sandbox(app, start="2026-06-01T00:00:00+02:00") as box:
        job = send.options(delay="24h", priority=80).submit_sync("a@b.c")
        with pytest.raises(ResultTimeout, match="scheduled"):
            job.result_sync(timeout=1)
        assert box.advance_sync("23h") == 1
        assert box.runs(daily)[0]["result"] == "2026-06-01T07:00:00+00:00"
        assert box.now == "2026-06-01T21:00:00.000Z"
        assert box.advance_sync("1h") == 1
        assert job.result_sync() == "a@b.c: hi"
        assert [run["lateness_ms"] for run in box.runs()] == [0, 0]
        assert box.submitted(send)[0].options == {"delay": "24h", "priority": 80}


def test_retries_go_on_when_their_time_has_come() -> None:
    with Sandbox(app) as box:
        job = send.submit_sync("a@b.c", "bad")
        box.run_sync()
        assert job.status_sync() == "retrying"
        assert box.advance_sync("9s") == 0
        assert box.advance_sync("1s") == 1
        box.advance_sync("1m")
        (run,) = box.runs(send)
        attempts = run["attempts"]
        assert isinstance(attempts, list)
        assert [attempt["outcome"] for attempt in attempts] == ["failed"] * 3
        with pytest.raises(RunFailed, match="no such mailbox"):
            job.result_sync()


def test_outcomes_by_intent() -> None:
    with Sandbox(app) as box:
        later = fickle.submit_sync()
        ended_by.submit_sync("discard")
        ended_by.submit_sync("cancel")
        box.run_sync()
        assert [run["status"] for run in box.runs(ended_by)] == ["failed", "cancelled"]
        assert later.status_sync() == "retrying"
        box.advance_sync("5m")
        assert later.result_sync() == 2


async def test_a_cancelled_job_is_not_run() -> None:
    async with Sandbox(app) as box:
        job = await send.options(delay="1h").submit("a@b.c")
        await job.cancel()
        assert await box.advance("2h") == 0
        assert await job.status() == "cancelled"


def test_assertions_tell_what_was_submitted() -> None:
    with Sandbox(app) as box:
        send.submit_many_sync([("a@b.c", "1"), ("d@e.f", "2")])
        box.assert_submitted("send", body="2")
        box.assert_not_submitted(greet)
        with pytest.raises(AssertionError, match=r"send\(to='x'\) was to be submitted at least once(?s:.*)body='2'"):
            box.assert_submitted(send, to="x")
        with pytest.raises(AssertionError, match="never"):
            box.assert_not_submitted(send, to="a@b.c")


def test_arguments_are_compared_as_they_are_sent() -> None:
    moment = datetime(2026, 5, 1, tzinfo=UTC)
    with Sandbox(app) as box:
        remind.submit_sync(moment)
        box.assert_submitted(remind, at=moment)


def test_a_task_that_submits_itself_for_ever_is_told_of() -> None:
    with Sandbox(app) as box:
        forever.submit_sync()
        with pytest.raises(MainspringError, match="submit itself"):
            box.run_sync()


def test_afterwards_the_tasks_belong_to_the_application_again() -> None:
    before = send.submitter
    with Sandbox(app) as box:
        assert send.submitter is box
    assert send.submitter is before
