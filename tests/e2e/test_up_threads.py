"""Threads that never stop: their runs are told as timed out, and the process gets a successor while it still drains."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import wait_until
from tests.support.program import TASKS, Program

STUCK = (
    TASKS
    + """

@app.task(timeout="200ms", cancel_grace="100ms", retry={"max_attempts": 1})
def stuck() -> None:
    time.sleep(600)
"""
)


def test_a_process_that_lost_its_threads_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(STUCK)
    with Program(tmp_path, "up", "tasks:app", "--port", "0", "--concurrency", "2", "--drain", "1s") as program:
        program.wait_ready()
        before = set(program.children())
        stuck = program.post("/v1/jobs", {"task": "stuck"})
        run = program.wait_for_run(stuck["id"], lambda run: run["status"] == "failed")
        attempts = run["attempts"]
        assert isinstance(attempts, list)
        assert [attempt["outcome"] for attempt in attempts] == ["timed_out"]
        other = program.post("/v1/jobs", {"task": "pid"})
        after = program.wait_for_run(other["id"], lambda run: run["status"] == "completed")
        assert after["result"] not in before
        wait_until(lambda: not before & set(program.children()), "the old process is gone")
        assert program.stop() == 0
