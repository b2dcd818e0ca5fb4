"""Time on the command line, against the memory store's HTTP server and the server's own store alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_cli_jobs import Command, command, folder, program
from tests.support.program import Program

__all__ = ["command", "folder", "program"]


def test_calendars_are_set_shown_listed_and_deleted(command: Command, tmp_path: Path) -> None:
    made = command.json("calendar", "set", "be", "--date", "2026-12-25", "--day-off", "sat", "--day-off", "sun")
    assert (made["name"], made["dates"], made["days_off"]) == ("be", ["2026-12-25"], ["sat", "sun"])
    assert command.json("calendar", "show", "be") == made
    assert "be" in [each["name"] for each in command.items("calendar", "list")]
    assert command("calendar", "set", "be", "--date", "2026-12-26", "--if-match", "99").returncode == 4
    assert command("calendar", "set", "be", "--date", "tomorrow").returncode == 2
    assert command("calendar", "set", "be").returncode == 2
    file = tmp_path / "holidays.ics"
    file.write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\nEND:VEVENT\nEND:VCALENDAR\n")
    assert "VEVENT" in str(command.json("calendar", "set", "be", "--icalendar", str(file))["icalendar"])
    job = command.json("job", "submit", "pid", "--cron", "0 9 25 12 *", "--calendar", '{"name": "be", "roll": "next"}')
    [coming] = command.items("job", "next", str(job["id"]), "--count", "1")
    assert (str(coming["at"])[5:10], coming["fires"]) in [("12-26", True), ("12-25", True)]
    assert command("calendar", "delete", "be").returncode == 4
    command.json("job", "cancel", str(job["id"]))
    assert command.json("calendar", "delete", "be")["name"] == "be"
    assert command("calendar", "show", "be").returncode == 3


@pytest.mark.parametrize("rule", ["FREQ=MONTHLY;BYDAY=-1FR", "FREQ=WEEKLY;BYDAY=MO"])
def test_recurrence_rules(command: Command, rule: str) -> None:
    job = command.json("job", "submit", "pid", "--rrule", rule, "--timezone", "Europe/Berlin")
    assert (job["kind"], job["rrule"]) == ("recurring", rule)
    assert len(command.items("job", "next", str(job["id"]), "--count", "3")) == 3
    command.json("job", "delete", str(job["id"]))


def test_a_backfill_fills_what_has_no_run(command: Command) -> None:
    job = command.json("job", "submit", "pid", "--cron", "0 0 1 1 *")
    words = ("job", "backfill", str(job["id"]), "--from", "2020-01-01T00:00:00Z", "--to", "2024-01-01T00:00:00Z")
    assert [str(each["at"])[:4] for each in command.items(*words, "--dry-run")] == ["2020", "2021", "2022", "2023"]
    filled = command.json(*words, "--limit", "2", "--order", "newest")
    assert (filled["count"], filled["more"]) == (2, True)
    assert [str(each["at"])[:4] for each in command.items(*words, "--dry-run")] == ["2020", "2021"]
    assert command(*words, "--order", "sideways").returncode == 2
    command.json("job", "delete", str(job["id"]))


def test_an_update_tells_what_it_adds_and_drops(command: Command) -> None:
    job = command.json("job", "submit", "pid", "--cron", "0 9 1 1 *")
    identity = str(job["id"])
    dry = command.json("job", "update", identity, "--cron", "0 10 1 1 *", "--dry-run")
    assert isinstance(dry["adds"], list)
    assert isinstance(dry["drops"], list)
    assert ({str(each["at"])[11:13] for each in dry["adds"]}, {str(each["at"])[11:13] for each in dry["drops"]}) == (
        {"10"},
        {"09"},
    )
    told = command("job", "update", identity, "--cron", "0 10 1 1 *", "-o", "json")
    assert told.returncode == 0
    assert "adds: " in told.stderr
    assert [each["version"] for each in command.items("job", "versions", identity)] == [2, 1]
    command.json("job", "delete", identity)


def test_explanations_are_told_in_a_sentence_and_as_gates(command: Command) -> None:
    job = command.json("job", "submit", "pid", "--cron", "0 0 1 1 *")
    identity = str(job["id"])
    told = command("job", "explain", identity)
    assert told.returncode == 0
    assert "its instant has not come" in told.stdout
    assert "queue" in told.stdout
    none = command.json("job", "explain", identity, "--at", "2030-06-01T00:00:00Z")
    assert (none["status"], str(none["why"]).startswith("the schedule has no occurrence")) == ("none", True)
    run = command.json("job", "submit", "pid", "--wait")
    assert "it ended completed" in str(command.json("run", "explain", str(run["id"]))["why"])
    assert command("run", "explain", "nothing").returncode == 3
    command.json("job", "delete", identity)


def test_a_store_that_is_in_use_keeps_its_promises(program: Program, command: Command) -> None:
    command.json("job", "submit", "pid", "--every", "50ms", "--overlap", "queue_all", "--max-runs", "5")
    told = subprocess.run(
        [sys.executable, "-m", "mainspring", "verify", "--store", f"sqlite:///{program.folder}/mainspring.db", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode, json.loads(told.stdout)["findings"]) == (0, []), told.stdout + told.stderr


def test_a_plan_tells_what_a_start_would_change(program: Program, folder: Path) -> None:
    (folder / "planned_tasks.py").write_text(
        "from mainspring import Mainspring\napp = Mainspring()\n\n@app.cron('0 9 * * *')\ndef report() -> None: ...\n"
    )
    store = f"sqlite:///{program.folder}/mainspring.db"
    told = subprocess.run(
        [sys.executable, "-m", "mainspring", "plan", "planned_tasks:app", "--store", store, "-o", "json"],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["items"] == [
        {"key": "schedule:report", "change": "create", "job_id": None, "fields": []}
    ]
