"""Importing and starting stay quick; measured as the best of several, on a machine that others use too."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

TRIES = 5
GENEROUS = 2.0


def best_of(*command: str) -> float:
    took = []
    for _ in range(TRIES):
        started = time.perf_counter()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        took.append(time.perf_counter() - started)
    return min(took)


def test_importing_the_package_takes_a_tenth_of_a_second_at_most() -> None:
    bare = best_of("-c", "pass")
    assert best_of("-c", "import mainspring") - bare < 0.1 * GENEROUS


def test_importing_what_an_application_needs_stays_quick() -> None:
    bare = best_of("-c", "pass")
    everything = "from mainspring import *; Mainspring().task(name='x')(lambda: None)"
    assert best_of("-c", everything) - bare < 0.25 * GENEROUS


@pytest.mark.parametrize("words", [["version"], ["--help"], ["job", "--help"], ["config", "show"]])
def test_the_command_line_starts_in_150_ms(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert best_of("-m", "mainspring", *words) < 0.15 * GENEROUS


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from mainspring.cli.main import main\n"
        "try: main(['job', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'msgspec', 'starlette', 'uvicorn', 'httpx2', 'jinja2', 'prometheus_client', 'asyncpg'}\n"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)\n"
    )
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert told.stderr.strip() == "[]"
