"""Time on the command line, against the memory store's HTTP server and the server's own store alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_cli_jobs import Command, command, folder, program

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
