"""What a user sees when processes die, stand still, or are asked to stop: one program, several ends of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.program import Program, descendants

Json = dict[str, object]
QUICK = {"MAINSPRING_LEASE": "6s", "MAINSPRING_HEARTBEAT": "500ms", "MAINSPRING_DRAIN": "1s"}

TASKS = """
import asyncio, os, time
from mainspring import Mainspring, current_run

app = Mainspring()

def effect(word: str) -> None:
    with open("effects", "a") as effects:
        effects.write(f"{word} {current_run().id} {current_run().attempt}\\n")

@app.task
async def work(seconds: float) -> str:
    effect("start")
    await asyncio.sleep(seconds)
    effect("end")
    return "done"

@app.task
def thread(seconds: float) -> str:
    effect("start")
    time.sleep(seconds)
    effect("end")
    return "done"

@app.task
def die() -> None:
    os.kill(os.getpid(), 9)

@app.task
async def block(seconds: float) -> None:
    time.sleep(seconds)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TASKS)
    return tmp_path


def started(folder: Path, *arguments: str) -> Program:
    return Program(folder, "up", "shop:app", "--port", "0", *arguments, environment=QUICK)


def submitted(up: Program, task: str, payload: Json | None = None, **fields: object) -> str:
    return str(up.post("/v1/jobs", {"task": task, "payload": payload or {}, **fields})["id"])


def in_status(*words: str) -> Callable[[Json], bool]:
    return lambda run: run["status"] in words


def outcomes(run: Json) -> list[object]:
    attempts = run["attempts"]
    assert isinstance(attempts, list)
    return [attempt["outcome"] for attempt in attempts]


def worker_process(up: Program) -> int:
    (number,) = up.children()
    return number


def test_a_killed_worker_and_what_each_run_wanted_of_it(folder: Path) -> None:
    with started(folder) as up:
        up.wait_ready()
        wanted = {word: submitted(up, "work", {"seconds": 1.5}, on_lost=word) for word in ("retry", "fail", "hold")}
        for identity in wanted.values():
            up.wait_for_run(identity, in_status("running"))
        os.kill(worker_process(up), signal.SIGKILL)
        failed = up.wait_for_run(wanted["fail"], in_status("failed"))
        held = up.wait_for_run(wanted["hold"], in_status("unknown"))
        retried = up.wait_for_run(wanted["retry"], in_status("completed"))
        assert [outcomes(run) for run in (failed, held, retried)] == [["lost"], ["lost"], ["lost", "completed"]]
        assert failed["error"] is not None
        assert up.call("POST", f"/v1/runs/{held['id']}/retry")[0] == 409
        assert up.post(f"/v1/runs/{held['id']}/resolve", {"as": "completed", "note": "seen"})["status"] == "completed"
        assert up.call("POST", f"/v1/runs/{held['id']}/resolve", {"as": "failed"})[0] == 409
        poison = up.wait_for_run(submitted(up, "die", retry={"max_attempts": 10}), in_status("failed"))
        assert (poison["reason"], outcomes(poison)) == ("poison", ["lost"] * 3)
        assert up.stop() == 0


def test_a_worker_that_stands_still_has_a_successor_and_its_late_end_is_refused(folder: Path) -> None:
    with started(folder) as up:
        up.wait_ready()
        identity = submitted(up, "work", {"seconds": 0.7})
        up.wait_for_run(identity, in_status("running"))
        stopped = worker_process(up)
        os.kill(stopped, signal.SIGSTOP)
        run = up.wait_for_run(identity, in_status("completed"))
        assert (outcomes(run), run["result"]) == (["lost", "completed"], "done")
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: stopped not in up.children(), "the stopped process drained and left")
        assert up.get(f"/v1/runs/{identity}") == run
        assert len(up.children()) == 1
        assert up.stop() == 0


def test_a_killed_keeper_costs_no_run(folder: Path, postgres18_url: str) -> None:
    with started(folder, "--processes", "2", "--store", postgres18_url) as up:
        up.wait_ready()
        ids = [submitted(up, "work", {"seconds": 5}) for _ in range(4)]
        for identity in ids:
            up.wait_for_run(identity, in_status("running"))
        keepers = {pid for pid, line in descendants(up.process.pid).items() if "keeper_main" in line}
        assert keepers
        for keeper in keepers:
            os.kill(keeper, signal.SIGKILL)
        runs = [up.wait_for_run(identity, in_status("completed")) for identity in ids]
        assert [outcomes(run) for run in runs] == [["completed"]] * 4
        assert up.stop() == 0


def test_a_handler_that_blocks_the_loop_past_its_timeout_is_ended(folder: Path) -> None:
    with started(folder) as up:
        up.wait_ready()
        identity = submitted(up, "block", {"seconds": 60}, timeout="500ms", retry={"max_attempts": 1})
        assert outcomes(up.wait_for_run(identity, in_status("failed"))) == ["timed_out"]
        assert up.wait_for_run(submitted(up, "work", {"seconds": 0}), in_status("completed"))["attempt"] == 1
        assert up.stop() == 0


def test_what_a_stop_cuts_short_is_released_or_told_and_goes_on_at_the_next_start(folder: Path) -> None:
    with started(folder) as up:
        up.wait_ready()
        asked = {
            "short": submitted(up, "work", {"seconds": 0.5}),
            "long": submitted(up, "work", {"seconds": 4}),
            "thread": submitted(up, "thread", {"seconds": 4}),
            "fail": submitted(up, "work", {"seconds": 4}, on_lost="fail"),
            "hold": submitted(up, "thread", {"seconds": 4}, on_lost="hold"),
        }
        for identity in asked.values():
            up.wait_for_run(identity, in_status("running", "completed"))
        begun = time.monotonic()
        assert up.stop() == 0
        assert time.monotonic() - begun < 4
    with started(folder) as up:
        up.wait_ready()
        runs = {name: up.wait_for_run(asked[name], in_status("completed", "failed", "unknown")) for name in asked}
        assert {name: (run["status"], outcomes(run)) for name, run in runs.items()} == {
            "short": ("completed", ["completed"]),
            "long": ("completed", ["released", "completed"]),
            "thread": ("completed", ["released", "completed"]),
            "fail": ("failed", ["lost"]),
            "hold": ("unknown", ["lost"]),
        }
        effects = (folder / "effects").read_text().splitlines()
        assert effects.count(f"end {asked['thread']} 1") == 0
        assert up.stop() == 0


def test_a_held_run_starts_soon_after_somebody_has_its_task(folder: Path) -> None:
    with started(folder) as up:
        up.wait_ready()
        identity = submitted(up, "newcomer")
        held = up.get(f"/v1/runs/{identity}")
        assert (held["status"], held["reason"]) == ("held", "no_worker")
        assert up.stop() == 0
    (folder / "shop.py").write_text(TASKS + "\n@app.task\nasync def newcomer() -> str:\n    return 'new'\n")
    with started(folder, "--strict-tasks") as up:
        up.wait_ready()
        assert up.wait_for_run(identity, in_status("completed"))["result"] == "new"
        assert up.call("POST", "/v1/jobs", {"task": "nobody_has_it"})[0] == 422
        assert up.stop() == 0
