"""What the command line says without a store: usage, errors, exit codes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.cli.main import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("STORE", "SERVER", "KEY", "QUEUE", "COORDINATION"):
        monkeypatch.delenv(f"MAINSPRING_{name}", raising=False)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A role sets up the logging of its process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Said:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, captured.out, captured.err


@pytest.fixture
def mainspring(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_version(mainspring: Said) -> None:
    code, out, _ = mainspring("version")
    assert (code, out.strip()) == (0, "0.1.0")


@pytest.mark.parametrize(
    "command",
    [
        "up",
        "api",
        "scheduler",
        "worker",
        "job",
        "run",
        "dead",
        "queue",
        "migrate",
        "config",
        "openapi",
        "bench",
        "calendar",
        "cron",
    ],
)
def test_every_command_explains_itself(mainspring: Said, command: str) -> None:
    code, out, _ = mainspring(command, "--help")
    assert code == 0
    assert f"mainspring {command}" in out


@pytest.mark.parametrize("command", ["top", "doctor", "key", "workflow"])
def test_what_is_not_built_is_not_there(mainspring: Said, command: str) -> None:
    code, _, err = mainspring(command)
    assert code == 2
    assert "No such command" in err


def test_unknown_options_are_usage_errors(mainspring: Said) -> None:
    assert mainspring("job", "list", "--colour", "red")[0] == 2


def test_a_wrong_setting_says_what_and_the_cure(mainspring: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_STROE", "x")
    code, _, err = mainspring("config", "show")
    assert code == 2
    assert "did you mean MAINSPRING_STORE?" in err


def test_config_show_names_origins(mainspring: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAINSPRING_PORT", "9")
    code, out, _ = mainspring("config", "show", "--origin", "-o", "json")
    assert code == 0
    assert json.loads(out)["port"] == {"value": 9, "origin": "environment MAINSPRING_PORT"}


def test_no_store_anywhere_is_told_with_the_next_step(mainspring: Said, tmp_path: Path) -> None:
    code, _, err = mainspring("job", "list")
    assert code == 5
    assert "mainspring up" in err
    assert not (tmp_path / "mainspring.db").exists()


def test_an_unreachable_server_is_exit_code_5(mainspring: Said) -> None:
    code, _, err = mainspring("job", "list", "--server", "http://127.0.0.1:9")
    assert code == 5
    assert "127.0.0.1:9" in err


def test_server_and_store_exclude_each_other(mainspring: Said) -> None:
    code, _, err = mainspring("job", "list", "--server", "http://127.0.0.1:9", "--store", "sqlite:///x.db")
    assert code == 2
    assert "give one of them" in err


@pytest.mark.parametrize("url", ["redis://localhost", "mainspring.db", "sqlite:mainspring.db"])
def test_a_store_that_is_none_is_a_usage_error(mainspring: Said, url: str) -> None:
    code, _, err = mainspring("job", "list", "--store", url)
    assert code == 2
    assert "sqlite:///" in err


def test_another_queue_than_the_store_is_refused(mainspring: Said) -> None:
    code, _, err = mainspring("up", "--queue", "redis://localhost")
    assert code == 2
    assert "the store itself" in err


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.org", "::"])
def test_only_loopback_is_served(mainspring: Said, host: str) -> None:
    code, _, err = mainspring("up", "--host", host)
    assert code == 2
    assert "loopback" in err


def test_a_worker_needs_an_application(mainspring: Said) -> None:
    code, _, err = mainspring("worker")
    assert code == 2
    assert "MODULE:APP" in err


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        ("", "tasks_one", "no Mainspring application"),
        ("from mainspring import Mainspring\na = Mainspring()\nb = Mainspring()", "tasks_two", "2 Mainspring"),
        ("from mainspring import Mainspring\na = Mainspring()", "tasks_three:b", "it has a"),
        ("", "tasks_four.py", "write it as a module: tasks_four:app"),
        ("", "nothing_here:app", "there is no module 'nothing_here'"),
    ],
)
def test_an_application_that_is_not_there(mainspring: Said, tmp_path: Path, source: str, name: str, told: str) -> None:
    if "nothing" not in name:
        (tmp_path / f"{name.partition(':')[0].removesuffix('.py')}.py").write_text(source)
    code, _, err = mainspring("up", name, "--port", "0")
    assert code == 2
    assert told in err


def test_where_to_go_may_stand_before_the_command(mainspring: Said, tmp_path: Path) -> None:
    code, out, _ = mainspring("--store", f"sqlite:///{tmp_path}/new.db", "-o", "json", "job", "list")
    assert (code, json.loads(out)) == (0, {"items": [], "next": None})


def test_a_store_in_memory_serves_no_roles(mainspring: Said) -> None:
    code, _, err = mainspring("up", "--store", "memory://x")
    assert code == 2
    assert "one process" in err


def test_payloads_are_json(mainspring: Said) -> None:
    code, _, err = mainspring("job", "submit", "x", "--payload", "{to: 1}")
    assert code == 2
    assert "no valid JSON" in err


def test_waiting_for_a_schedule_is_refused(mainspring: Said) -> None:
    code, _, err = mainspring("job", "submit", "x", "--every", "5m", "--wait")
    assert code == 2
    assert "--wait" in err


def test_limits_of_queues_are_not_offered_yet(mainspring: Said) -> None:
    store = ("--store", "sqlite:///limits.db")
    for wanted, pointer in ((("--concurrency", "3"), "/concurrency"), (("--rate", "10/1s"), "/rate")):
        code, _, err = mainspring("queue", "limit", "mail", *wanted, *store)
        assert code == 2
        assert f"{pointer}: this server does not offer limits yet" in err
    code, out, _ = mainspring("queue", "limit", "mail", "--clear", "-o", "json", *store)
    assert code == 0
    assert json.loads(out)["limits"] is None


@pytest.mark.parametrize(
    ("wanted", "told"),
    [((), "Say --concurrency or --rate"), (("--rate", "ten"), "10/1s"), (("--concurrency", "0"), "x>=1")],
)
def test_a_limit_says_how_much(mainspring: Said, wanted: tuple[str, ...], told: str) -> None:
    code, _, err = mainspring("queue", "limit", "mail", *wanted)
    assert code == 2
    assert told in err
