"""`mainspring migrate` as a person uses it: look, apply, or run the SQL by hand."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.binaries import find_binaries
from tests.support.program import mainspring

STORES = ("sqlite_url", "postgres15_url", "postgres18_url")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def states(folder: Path, store: str) -> set[bool]:
    told = mainspring(folder, "migrate", "status", "--store", store, "-o", "json")
    assert told.returncode == 0, told.stderr
    return {step["applied"] for step in json.loads(told.stdout)}


def run_by_hand(script: str, store: str) -> None:
    if store.startswith("sqlite"):
        with closing(sqlite3.connect(store.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
        return
    psql = [str(find_binaries(18) / "psql"), store, "-q", "-v", "ON_ERROR_STOP=1"]
    subprocess.run(psql, input=script, text=True, check=True, capture_output=True)


def test_status_up_status(tmp_path: Path, store: str) -> None:
    assert states(tmp_path, store) == {False}
    applied = mainspring(tmp_path, "migrate", "up", "--store", store)
    assert (applied.returncode, applied.stdout.splitlines()[0]) == (0, "applied 0001_initial")
    assert states(tmp_path, store) == {True}
    again = mainspring(tmp_path, "migrate", "--store", store)
    assert (again.returncode, again.stdout) == (0, "")
    assert "up to date" in again.stderr
    shown = mainspring(tmp_path, "migrate", "status", "--store", store).stdout
    assert all(line.startswith("applied  ") for line in shown.splitlines())


def test_the_sql_may_be_run_by_hand(tmp_path: Path, store: str) -> None:
    script = mainspring(tmp_path, "migrate", "sql", "--store", store)
    assert script.returncode == 0
    run_by_hand(script.stdout, store)
    assert states(tmp_path, store) == {True}
    assert "up to date" in mainspring(tmp_path, "migrate", "up", "--store", store).stderr
    assert mainspring(tmp_path, "job", "submit", "t", "--store", store).returncode == 0
    assert json.loads(mainspring(tmp_path, "run", "list", "--store", store, "-o", "json").stdout)["items"]
