"""`mainspring up` on PostgreSQL: it makes an empty schema, refuses an older one, and waits for a server that is away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import free_port, wait_until
from tests.support.program import TASKS, Program, mainspring
from tests.support.servers import PostgresServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def test_an_empty_database_is_set_up(folder: Path, postgres15_url: str) -> None:
    environment = {"MAINSPRING_STORE": postgres15_url}
    with Program(folder, "up", "tasks:app", "--port", "0", environment=environment) as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "add", "payload": {"a": 1, "b": 2}})
        assert program.wait_for_run(job["id"], lambda run: run["status"] == "completed")["result"] == 3
        told = mainspring(folder, "job", "submit", "pid", "--wait", "-o", "json", environment=environment)
        assert json.loads(told.stdout)["status"] == "completed"
        assert program.stop() == 0


def test_a_killed_worker_on_postgresql_is_replaced_and_its_run_starts_again(folder: Path, postgres18_url: str) -> None:
    with Program(folder, "up", "tasks:app", "--port", "0", "--store", postgres18_url) as program:
        program.wait_ready()
        job = program.post("/v1/jobs", {"task": "die_once", "payload": {"marker": str(folder / "died")}})
        run = program.wait_for_run(job["id"], lambda run: run["status"] == "completed")
        assert run["attempt"] == 2
        assert program.stop() == 0


def test_clients_take_a_database_as_it_is(folder: Path, postgres15_url: str) -> None:
    told = mainspring(folder, "job", "list", "--store", postgres15_url)
    assert told.returncode == 5
    assert "mainspring migrate" in told.stderr


def test_migrate_shows_and_applies_the_steps(folder: Path, postgres15_url: str) -> None:
    before = mainspring(folder, "migrate", "status", "--store", postgres15_url)
    assert before.returncode == 0
    assert all(line.startswith("missing") for line in before.stdout.splitlines())
    assert mainspring(folder, "migrate", "--store", postgres15_url).stdout.startswith("applied")
    after = mainspring(folder, "migrate", "status", "--store", postgres15_url, "-o", "json")
    assert all(step["applied"] for step in json.loads(after.stdout))
    assert "up to date" in mainspring(folder, "migrate", "up", "--store", postgres15_url).stderr
    assert mainspring(folder, "job", "list", "--store", postgres15_url, "-o", "json").returncode == 0
    assert "create table" in mainspring(folder, "migrate", "sql", "--store", postgres15_url).stdout.lower()


def test_a_server_that_is_away_is_waited_for(folder: Path) -> None:
    server = PostgresServer(15, fsync=False)
    server.start()
    try:
        url = server.create_database()
        server.halt()
        with Program(folder, "up", "tasks:app", "--port", "0", "--store", url) as program:
            wait_until(lambda: any("the store is unreachable" in line for line in program.log), "it says so")
            assert program.out == []
            server.restart()
            program.wait_ready()
            job = program.post("/v1/jobs", {"task": "add", "payload": {"a": 1, "b": 2}})
            program.wait_for_run(job["id"], lambda run: run["status"] == "completed")
            assert program.stop() == 0
    finally:
        server.stop()


def test_while_it_waits_for_a_server_it_can_be_stopped(folder: Path) -> None:
    nobody = f"postgresql://postgres@127.0.0.1:{free_port()}/none"
    with Program(folder, "up", "tasks:app", "--port", "0", "--store", nobody) as program:
        wait_until(lambda: any("the store is unreachable" in line for line in program.log), "it says so")
        assert program.stop() == 0
        assert program.out == []
