"""`mainspring up` on SQLite: ready soon, drained at the end, and never without its workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.processes import alive, wait_until
from tests.support.program import TASKS, Program, mainspring

GENEROUS = 3.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def started(folder: Path, *arguments: str, **environment: str) -> Program:
    return Program(folder, "up", *arguments, "--port", "0", environment=environment)


def test_it_says_one_line_and_answers(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        assert program.address.startswith("http://127.0.0.1:")
        assert program.ready_after < 2.0 * GENEROUS
        assert program.call("GET", "/livez")[0] == 200
        assert program.call("GET", "/readyz")[0] == 200
        job = program.post("/v1/jobs", {"task": "add", "payload": {"a": 1, "b": 2}})
        run = program.wait_for_run(job["id"], lambda run: run["status"] == "completed")
        assert run["result"] == 3
        assert program.stop() == 0
        assert program.out == [f"ready {program.address}\n"]
    assert (folder / "mainspring.db").exists()


def test_the_module_alone_is_enough(folder: Path) -> None:
    with started(folder, "tasks") as program:
        assert len(program.wait_ready().children()) == 1


def test_the_demo_moves_within_two_seconds(folder: Path) -> None:
    with started(folder, "--demo") as program:
        program.wait_ready()
        ready_at = time.monotonic()
        wait_until(
            lambda: bool(program.get("/v1/runs?status=completed")["items"]),
            "a sample task has run",
            lambda: "".join(program.log),
        )
        assert time.monotonic() - ready_at < 2.0 * GENEROUS


def test_without_an_application_there_is_the_api(folder: Path) -> None:
    with started(folder) as program:
        program.wait_ready()
        assert program.children() == {}
        assert program.stop() == 0


def test_a_port_in_use_is_told(folder: Path) -> None:
    with started(folder) as program:
        port = program.wait_ready().address.rpartition(":")[2]
        told = mainspring(folder, "up", "--port", port)
        assert told.returncode == 4
        assert f"127.0.0.1:{port}" in told.stderr
        assert "--port 0" in told.stderr


def test_a_damaged_store_is_refused_at_once(folder: Path) -> None:
    (folder / "mainspring.db").write_bytes(b"This was a database once. " * 100)
    told = mainspring(folder, "up", "--port", "0")
    assert told.returncode == 5
    assert "is damaged or no SQLite file" in told.stderr
    assert "restore a backup" in told.stderr


def test_a_stop_lets_runs_finish(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "sleep", "payload": {"seconds": 1.5}})
        program.wait_for_run(job["id"], lambda run: run["status"] == "running")
        program.signal(signal.SIGTERM)
        run = program.wait_for_run(job["id"], lambda run: run["status"] != "running")
        assert (run["status"], run["result"]) == ("completed", "slept")
        assert program.wait() == 0


def test_ctrl_c_reaches_the_whole_group_and_drains(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "sleep", "payload": {"seconds": 1}})
        program.wait_for_run(job["id"], lambda run: run["status"] == "running")
        os.killpg(program.process.pid, signal.SIGINT)
        assert program.wait() == 0
        shown = mainspring(folder, "run", "show", str(job["id"]), "-o", "json")
        assert '"completed"' in shown.stdout


def test_after_the_drain_time_the_run_is_given_back(folder: Path) -> None:
    with started(folder, "tasks:app", "--drain", "300ms") as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "sleep", "payload": {"seconds": 60}})
        program.wait_for_run(job["id"], lambda run: run["status"] == "running")
        assert program.stop() == 0
    shown = mainspring(folder, "run", "show", str(job["id"]), "-o", "json")
    assert '"released"' in shown.stdout
    assert '"queued"' in shown.stdout


def test_a_second_signal_ends_at_once(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "sleep", "payload": {"seconds": 60}})
        program.wait_for_run(job["id"], lambda run: run["status"] == "running")
        program.signal(signal.SIGTERM)
        wait_until(lambda: any("worker draining" in line for line in program.log), "it drains")
        asked = time.monotonic()
        program.signal(signal.SIGTERM)
        assert program.wait() != 0
        assert time.monotonic() - asked < 5.0


def test_a_killed_worker_is_replaced_and_its_run_starts_again(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        before = set(program.children())
        marker = str(folder / "died")
        job = program.post("/v1/jobs", {"task": "die_once", "payload": {"marker": marker}})
        run = program.wait_for_run(job["id"], lambda run: run["status"] == "completed")
        assert run["attempt"] == 2
        assert run["result"] not in before
        assert program.call("GET", "/livez")[0] == 200


def test_workers_do_not_outlive_their_supervisor(folder: Path) -> None:
    with started(folder, "tasks:app", "--processes", "2") as program:
        program.wait_ready()
        children = set(program.children())
        assert len(children) == 2
        program.signal(signal.SIGKILL)
        program.wait()
        wait_until(lambda: not any(alive(pid) for pid in children), "the worker processes are gone")


def test_workers_stop_with_their_supervisor_and_go_on_with_it(folder: Path) -> None:
    with started(folder, "tasks:app") as program:
        program.wait_ready()
        (child,) = program.children()
        program.signal(signal.SIGSTOP)
        wait_until(lambda: stopped(child), "the worker process has stopped")
        program.signal(signal.SIGCONT)
        wait_until(lambda: not stopped(child), "it goes on")
        job = program.post("/v1/jobs", {"task": "pid"})
        program.wait_for_run(job["id"], lambda run: run["status"] == "completed")
        program.signal(signal.SIGSTOP)
        wait_until(lambda: stopped(child), "the worker process has stopped")
        program.signal(signal.SIGKILL)
        wait_until(lambda: not alive(child), "it has died with its supervisor, though stopped")


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_roles_in_processes_of_their_own(folder: Path) -> None:
    with (
        Program(folder, "api", "--port", "0") as api,
        Program(folder, "scheduler", "tasks:app") as scheduler,
        Program(folder, "worker", "tasks:app", "--concurrency", "3") as worker,
    ):
        for program in (api, scheduler, worker):
            program.wait_ready()
        job = api.post("/v1/jobs", {"task": "add", "payload": {"a": 1, "b": 2}, "delay": 0.2})
        found: list[dict[str, object]] = []
        wait_until(lambda: api.get(f"/v1/jobs/{job['id']}")["status"] == "completed", "it has run")
        workers = api.get("/v1/workers")["items"]
        assert isinstance(workers, list)
        assert [each["slots"] for each in workers] == [3]
        assert found == []
        assert [program.stop() for program in (worker, scheduler, api)] == [0, 0, 0]


def test_code_that_changed_is_reloaded(folder: Path) -> None:
    with started(folder, "tasks:app", "--reload") as program:
        program.wait_ready()
        before = set(program.children())
        (folder / "tasks.py").write_text(TASKS + "\n@app.task\ndef new() -> str:\n    return 'new'\n")
        wait_until(lambda: bool(set(program.children()) - before), "a worker process started anew")
        job = program.post("/v1/jobs", {"task": "new"})
        assert program.wait_for_run(job["id"], lambda run: run["status"] == "completed")["result"] == "new"


def test_a_module_that_fails_shows_its_own_error(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    told = mainspring(folder, "up", "broken:app", "--port", "0")
    assert told.returncode == 1
    assert "nothing_of_this_name" in told.stderr
