"""The command line against a running `up`, over its server and straight to its store alike."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from mainspring.cli.main import main
from tests.support.processes import wait_until
from tests.support.program import TASKS, Program, mainspring

Json = dict[str, object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli")
    (place / "tasks.py").write_text(TASKS)
    return place


@pytest.fixture(scope="module")
def program(folder: Path) -> Iterator[Program]:
    with Program(folder, "up", "tasks:app", "--port", "0") as started:
        yield started.wait_ready()


class Command:
    """Runs commands against the program, by one of the two ways to it."""

    def __init__(self, program: Program, way: str) -> None:
        self._folder = program.folder
        url = program.address if way == "server" else f"sqlite:///{program.folder}/mainspring.db"
        self._where = (f"--{way}", url)

    def __call__(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """In this process, since starting one for each word takes a hundred times as long."""
        arguments = [*words, *self._where]
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self._folder),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main(arguments)
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(arguments, ended.value.code, out.getvalue(), err.getvalue())

    def json(self, *words: str) -> Json:
        told = self(*words, "-o", "json")
        assert told.returncode == 0, told.stderr
        answer = json.loads(told.stdout)
        assert isinstance(answer, dict)
        return answer

    def items(self, *words: str) -> list[Json]:
        items = self.json(*words)["items"]
        assert isinstance(items, list)
        return items


@pytest.fixture(params=["server", "store"])
def command(request: pytest.FixtureRequest, program: Program) -> Command:
    return Command(program, request.param)


def test_submit_and_wait_prints_the_result(command: Command) -> None:
    run = command.json("job", "submit", "add", "--payload", '{"a": 1, "b": 2}', "--wait")
    assert (run["status"], run["result"], run["attempt"]) == ("completed", 3, 1)


def test_waiting_for_a_failed_job_is_exit_code_1(command: Command) -> None:
    told = command("job", "submit", "fail", "--payload", '{"why": "because"}', "--wait")
    assert told.returncode == 1
    assert "ValueError: because" in told.stdout


def test_a_payload_may_come_from_standard_input_or_a_file(command: Command, folder: Path) -> None:
    told = command("job", "submit", "add", "--payload", "-", "--wait", "-o", "json", stdin='{"a": 4, "b": 5}')
    assert json.loads(told.stdout)["result"] == 9
    (folder / "payload.json").write_text('{"a": 6, "b": 7}')
    assert command.json("job", "submit", "add", "--payload", "@payload.json", "--wait")["result"] == 13


def test_a_delayed_job_is_shown_changed_and_cancelled(command: Command) -> None:
    job = command.json("job", "submit", "add", "--delay", "1h", "--payload", '{"a": 1, "b": 2}', "--name", "later")
    identity = str(job["id"])
    assert (job["kind"], job["status"]) == ("delayed", "scheduled")
    assert command.json("job", "show", identity)["name"] == "later"
    assert identity in [each["id"] for each in command.items("job", "list", "--status", "scheduled")]
    assert command.json("job", "update", identity, "--priority", "90")["priority"] == 90
    assert command.json("job", "pause", identity)["status"] == "paused"
    assert command.json("job", "resume", identity)["status"] == "scheduled"
    assert command.json("job", "cancel", identity)["status"] == "cancelled"


def test_a_recurring_job_says_when_it_is_due_and_is_triggered(command: Command) -> None:
    job = command.json("job", "submit", "add", "--cron", "0 9 * * *", "--timezone", "America/New_York",
                       "--payload", '{"a": 1, "b": 2}')  # fmt: skip
    identity = str(job["id"])
    coming = command.items("job", "next", identity, "--count", "3")
    assert len(coming) == 3
    assert all(str(each["local"])[11:16] == "09:00" for each in coming)
    run = command.json("job", "trigger", identity)
    wait_until(
        lambda: command.json("run", "show", str(run["id"]))["status"] == "completed", "the triggered run is done"
    )
    assert command.json("job", "delete", identity)["id"] == identity
    assert command("job", "show", identity).returncode == 3


def test_runs_are_listed_and_their_logs_read(command: Command) -> None:
    run = command.json("job", "submit", "add", "--payload", '{"a": 1, "b": 2}', "--wait")
    identity = str(run["id"])
    assert identity in [each["id"] for each in command.items("run", "list", "--task", "add")]
    wait_until(lambda: "adding" in command("run", "logs", identity).stdout, "the log has arrived")
    followed = command("run", "logs", "-f", identity, "-o", "jsonl")
    assert [json.loads(line)["message"] for line in followed.stdout.splitlines()] == ["adding"]


def test_a_run_is_cancelled_and_retried(command: Command) -> None:
    job = command.json("job", "submit", "sleep", "--payload", '{"seconds": 60}')
    identity = str(job["id"])
    wait_until(lambda: command.json("run", "show", identity)["status"] == "running", "it runs")
    assert command.json("run", "cancel", identity)["cancel_requested_at"]
    wait_until(lambda: command.json("run", "show", identity)["status"] == "cancelled", "it is cancelled")
    again = command.json("run", "retry", identity)
    assert (again["replaces"], again["origin"]) == (identity, "retry")
    command.json("run", "cancel", str(again["id"]))


def test_dead_letters_are_listed_replayed_and_discarded(command: Command) -> None:
    dead = [command("job", "submit", "fail", "--wait", "--tag", "dead", "-o", "json").stdout for _ in range(3)]
    first, second, third = (str(json.loads(each)["id"]) for each in dead)
    assert {first, second, third} <= {str(each["id"]) for each in command.items("dead", "list", "--task", "fail")}
    assert command.json("dead", "show", first)["status"] == "failed"
    replayed = command.json("dead", "replay", first)
    assert replayed["replaces"] == first
    wait_until(lambda: command.json("run", "show", str(replayed["id"]))["status"] == "failed", "it failed again")
    assert command("dead", "discard", second).returncode == 0
    assert command("dead", "discard", "01890000-0000-7000-8000-000000000000").returncode == 3
    before = {str(each["id"]) for each in command.items("dead", "list", "--task", "fail")}
    assert third in before
    assert {str(each["id"]) for each in command.items("dead", "discard", "--task", "fail", "--dry-run")} == before
    assert command("dead", "discard", "--task", "fail").returncode == 0
    assert command.items("dead", "list", "--task", "fail") == []


def test_queues_are_paused_and_resumed(command: Command) -> None:
    assert command.json("queue", "pause", "slow")["paused"] is True
    job = command.json("job", "submit", "pid", "--queue", "slow")
    assert {str(each["name"]): each["queued"] for each in command.items("queue", "list")}["slow"] == 1
    assert command.json("queue", "resume", "slow")["paused"] is False
    wait_until(lambda: command.json("run", "show", str(job["id"]))["status"] == "completed", "it has run")


def test_a_queue_is_purged(command: Command) -> None:
    command.json("queue", "pause", "gone")
    job = command.json("job", "submit", "pid", "--queue", "gone")
    assert command("queue", "purge", "gone", stdin="n\n").returncode == 130
    command.json("queue", "purge", "gone", "--yes")
    assert command.json("run", "show", str(job["id"]))["status"] == "cancelled"
    command.json("queue", "resume", "gone")


def test_workers_are_listed(command: Command) -> None:
    (worker,) = command.items("worker", "list")
    assert worker["slots"] == 10
    table = command("worker", "list").stdout.splitlines()
    assert table[0].split()[:2] == ["ID", "HOST"]
    assert str(worker["id"]) in table[1]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("job", "show", "01890000-0000-7000-8000-000000000000"), 3, "job list"),
        (("run", "show", "01890000-0000-7000-8000-000000000000"), 3, "run list"),
        (("job", "submit", "add", "--cron", "99 * * * *"), 2, "/cron"),
        (("job", "submit", "add", "--at", "2026-01-01T00:00:00"), 2, "/at"),
        (("job", "submit", "add", "--at", "2026-01-01T00:00:00Z", "--every", "5m"), 2, "every"),
        (("job", "submit", "add", "--payload", '{"a": "x"}'), 2, "/payload"),
        (("job", "submit", "ad", "--strict-tasks"), 2, "add"),
        (("job", "list", "--status", "sleepy"), 2, "status"),
    ],
)
def test_errors_say_what_is_wrong(command: Command, words: tuple[str, ...], code: int, told: str) -> None:
    ended = command(*words)
    assert ended.returncode == code, ended.stderr
    assert told in ended.stderr
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr


def test_a_key_that_is_taken_is_a_conflict(command: Command) -> None:
    job = command.json("job", "submit", "add", "--delay", "1h", "--key", "only-one", "--payload", '{"a": 1, "b": 2}')
    told = command("job", "submit", "add", "--delay", "1h", "--key", "only-one", "--payload", '{"a": 1, "b": 2}')
    assert told.returncode == 4
    assert str(job["id"]) in told.stderr
    command.json("job", "cancel", str(job["id"]))
    assert command("job", "pause", str(job["id"])).returncode == 4


def test_jsonl_is_one_object_a_line(command: Command) -> None:
    command.json("job", "submit", "pid", "--wait")
    lines = command("run", "list", "--task", "pid", "-o", "jsonl").stdout.splitlines()
    assert lines
    assert all(json.loads(line)["task"] == "pid" for line in lines)


def test_the_folder_of_up_needs_no_options(program: Program) -> None:
    told = mainspring(program.folder, "job", "submit", "pid", "--wait", "-o", "json")
    assert told.returncode == 0
    by_environment = mainspring(
        program.folder.parent, "worker", "list", "-o", "json", environment={"MAINSPRING_SERVER": program.address}
    )
    assert len(json.loads(by_environment.stdout)["items"]) == 1
