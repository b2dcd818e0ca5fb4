"""What a user sees of runs, through one `mainspring up`: outcomes, order, limits of time and size, logs, dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Program

Json = dict[str, object]

TASKS = """
import asyncio, logging, time
from mainspring import Cancel, Discard, Mainspring, Retry, RetryLater, current_run

app = Mainspring()
log = logging.getLogger("shop")

@app.task(queue="line")
async def note(tag: str) -> None:
    with open("order", "a") as order:
        order.write(tag + " ")

@app.task(retry=Retry(max_attempts=2, initial="50ms", jitter=0))
async def fail(message: str = "boom") -> None:
    raise ValueError(message)

@app.task
async def later() -> int:
    if current_run().attempt == 1:
        raise RetryLater("100ms")
    return current_run().attempt

@app.task
async def intend(how: str) -> None:
    raise Discard("no use") if how == "discard" else Cancel("not wanted")

@app.task
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"

@app.task(retry=Retry(max_attempts=1))
def stuck(seconds: float) -> None:
    time.sleep(seconds)

@app.task(retry=Retry(max_attempts=1))
async def large(size: int) -> str:
    return "x" * size

@app.task
async def talk() -> None:
    run = current_run()
    run.progress(0.5, "half way")
    log.warning("order %d", 7, extra={"customer": "ann"})
    run.log.info("by hand", step=2)
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("surface")
    (folder / "shop.py").write_text(TASKS)
    with Program(folder, "up", "shop:app", "--port", "0", "--concurrency", "3") as program:
        yield program.wait_ready()


def submitted(up: Program, task: str, payload: Json | None = None, **fields: object) -> str:
    return str(up.post("/v1/jobs", {"task": task, "payload": payload or {}, **fields})["id"])


def ended(up: Program, identity: object) -> Json:
    words = ("completed", "failed", "cancelled", "skipped", "unknown")
    return up.wait_for_run(identity, lambda run: run["status"] in words)


def running(up: Program, identity: str) -> None:
    up.wait_for_run(identity, lambda run: run["status"] == "running")


def outcomes(run: Json) -> list[object]:
    attempts = run["attempts"]
    assert isinstance(attempts, list)
    return [(attempt["number"], attempt["outcome"]) for attempt in attempts]


def items(up: Program, path: str) -> list[Json]:
    found = up.get(path)["items"]
    assert isinstance(found, list)
    return found


def test_a_queue_obeys_its_priorities_and_queues_take_turns(up: Program) -> None:
    for queue in ("line", "other"):
        up.post(f"/v1/queues/{queue}/pause")
    tags = {submitted(up, "note", {"tag": f"a{rank}"}, priority=rank): f"a{rank}" for rank in (10, 90, 50, 0, 100)}
    tags |= {submitted(up, "note", {"tag": f"b{rank}"}, queue="other", priority=1): f"b{rank}" for rank in (1, 2)}
    line = next(queue for queue in items(up, "/v1/queues") if queue["name"] == "line")
    assert (line["paused"], line["queued"]) == (True, 5)
    assert {str(up.get(f"/v1/runs/{identity}")["status"]) for identity in tags} == {"queued"}
    for identity in [submitted(up, "sleep", {"seconds": 0.7}) for _ in range(3)]:
        running(up, identity)
    for queue in ("line", "other"):
        up.post(f"/v1/queues/{queue}/resume")
    assert [ended(up, identity)["status"] for identity in tags] == ["completed"] * 7
    order = (up.folder / "order").read_text().split()
    assert [tag for tag in order if tag.startswith("a")] == ["a100", "a90", "a50", "a10", "a0"]
    assert sorted(tag for tag in order[:4] if tag.startswith("b")) == ["b1", "b2"]


def test_a_failure_is_tried_again_kept_among_the_dead_letters_and_replayed(up: Program) -> None:
    run = ended(up, submitted(up, "fail", {"message": "no such mailbox"}))
    assert (run["status"], run["attempt"], outcomes(run)) == ("failed", 2, [(1, "failed"), (2, "failed")])
    error = run["error"]
    assert isinstance(error, dict)
    assert (error["type"], error["message"]) == ("ValueError", "no such mailbox")
    assert "raise ValueError" in error["traceback"]
    assert run["id"] in [letter["id"] for letter in items(up, "/v1/dead-letters")]
    replay = up.post(f"/v1/dead-letters/{run['id']}/replay", {"payload": {"message": "again"}})
    assert (replay["replaces"], replay["origin"], replay["job_id"]) == (run["id"], "replay", run["job_id"])
    assert run["id"] not in [letter["id"] for letter in items(up, "/v1/dead-letters")]
    assert up.call("POST", f"/v1/dead-letters/{run['id']}/replay")[0] == 409
    again = ended(up, replay["id"])["error"]
    assert isinstance(again, dict)
    assert again["message"] == "again"


def test_a_retrying_run_goes_on_at_once_when_asked(up: Program) -> None:
    identity = submitted(up, "fail", retry={"max_attempts": 2, "initial": "1h", "jitter": 0})
    waiting = up.wait_for_run(identity, lambda run: run["status"] == "retrying")
    assert waiting["retry_at"] is not None
    assert up.post(f"/v1/runs/{identity}/retry")["id"] == identity
    assert outcomes(ended(up, identity)) == [(1, "failed"), (2, "failed")]


def test_handlers_say_how_their_run_ends(up: Program) -> None:
    waited = ended(up, submitted(up, "later"))
    assert (waited["result"], outcomes(waited)) == (2, [(1, "released"), (2, "completed")])
    discarded = ended(up, submitted(up, "intend", {"how": "discard"}))
    assert (discarded["status"], discarded["attempt"]) == ("failed", 1)
    assert ended(up, submitted(up, "intend", {"how": "cancel"}))["status"] == "cancelled"


@pytest.mark.parametrize("task", ["sleep", "stuck"])
def test_a_timeout_ends_the_run_soon(up: Program, task: str) -> None:
    begun = time.monotonic()
    run = ended(up, submitted(up, task, {"seconds": 4}, timeout="0.3s", retry={"max_attempts": 1}))
    assert (run["status"], outcomes(run)) == ("failed", [(1, "timed_out")])
    assert time.monotonic() - begun < 3.5


def test_a_cancel_stops_a_handler_or_ends_the_run_without_it(up: Program) -> None:
    soft, hard = submitted(up, "sleep", {"seconds": 30}), submitted(up, "stuck", {"seconds": 3}, cancel_grace="0.3s")
    for identity in (soft, hard):
        running(up, identity)
        asked = up.post(f"/v1/runs/{identity}/cancel")
        assert asked["cancel_requested_at"] is not None
        assert outcomes(ended(up, identity)) == [(1, "cancelled")]
        assert up.post(f"/v1/runs/{identity}/cancel")["status"] == "cancelled"


def test_a_result_over_its_bound_fails_the_attempt(up: Program) -> None:
    assert ended(up, submitted(up, "large", {"size": 200 * 1024}))["status"] == "completed"
    run = ended(up, submitted(up, "large", {"size": 257 * 1024}))
    assert run["status"] == "failed"
    assert "256 KiB" in str(run["error"])


def test_what_a_handler_logs_and_how_far_it_is(up: Program) -> None:
    identity = submitted(up, "talk")
    assert ended(up, identity)["progress"] == {"value": 0.5, "message": "half way"}
    up.wait_for_run(identity, lambda _: len(items(up, f"/v1/runs/{identity}/logs")) == 2)
    first, second = items(up, f"/v1/runs/{identity}/logs")
    assert (first["level"], first["message"], first["attempt"]) == ("warning", "order 7", 1)
    fields = first["fields"]
    assert isinstance(fields, dict)
    assert fields["customer"] == "ann"
    assert (second["message"], second["fields"]) == ("by hand", {"step": 2})


def test_what_cannot_start_in_time_expires(up: Program) -> None:
    run = ended(up, submitted(up, "nobody_has_it", expires_in="300ms"))
    assert (run["status"], run["reason"], run["attempt"]) == ("skipped", "expired", 0)


def test_a_purge_cancels_what_is_queued(up: Program) -> None:
    up.post("/v1/queues/full/pause")
    ids = [submitted(up, "note", {"tag": "x"}, queue="full") for _ in range(3)]
    assert up.post("/v1/queues/full/purge")["purged"] == 3
    assert [ended(up, identity)["status"] for identity in ids] == ["cancelled"] * 3
