"""Nothing is left open: no reminder, no silenced checker, no test that does not run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house.tree import name_of, project_files, python_files, refuse

# Put together from halves, so that this file does not find itself.
REMINDERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
SILENCED = re.compile(r"#\s*type:\s*" + "ignore|#\\s*mypy:\\s*" + "ignore|raise NotImplemented" + "Error")
NOT_RUN = re.compile(r"pytest\.(mark\.)?(" + "sk" + "ip|skip" + "if|xf" + "ail|importor" + "skip)|unittest\\.sk" + "ip")
TEXT = frozenset({".py", ".sql", ".md", ".toml", ".html", ".css", ".js", ""})


def test_no_reminders() -> None:
    refuse(
        matches(REMINDERS, (path for path in project_files() if path.suffix in TEXT and path.name != "LICENSE")),
        "a reminder in the code is seen by nobody: do it, or write it where work is planned",
    )


def test_no_silenced_checkers_and_no_stubs() -> None:
    refuse(matches(SILENCED, python_files()), "a silenced checker or a stub hides what is not finished: finish it")


def test_every_test_runs() -> None:
    refuse(
        matches(NOT_RUN, python_files("tests/")),
        "what was not tested is not known to work: a missing server or a known fault is a failure, never a silence",
    )


def matches(pattern: re.Pattern[str], paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if pattern.search(line):
                yield f"{name_of(path)}:{number}: {line.strip()[:100]}"
