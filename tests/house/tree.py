"""The files of the project and a way to say what is wrong with them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/mainspring"


@cache
def project_files() -> tuple[Path, ...]:
    """All that is committed or would be: what git does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return tuple(ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file())


def python_files(*folders: str) -> Iterator[Path]:
    for path in project_files():
        if path.suffix == ".py" and (not folders or name_of(path).startswith(folders)):
            yield path


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def refuse(findings: Iterable[str], why: str) -> None:
    """Fails with every finding, and with the reason for the rule."""
    listed = sorted(findings)
    assert not listed, why + "\n  " + "\n  ".join(listed)
