"""Where the programs of a PostgreSQL server are: on this machine, or unpacked from a wheel into `.servers/`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / ".servers"
VERSIONS = (15, 18)


class ServerMissing(RuntimeError):
    """No such server here: a failure, never a skip, since what was not tested is not known to work."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"PostgreSQL {version} is not on this machine: `make servers` installs it; "
            f"or name a running one in {url_setting(version)}"
        )


def url_setting(version: int) -> str:
    """The environment variable that names a server to use instead of one of our own."""
    return f"MAINSPRING_TEST_POSTGRES{version}_URL"


def find_binaries(version: int) -> Path:
    """The folder that holds initdb and postgres of this major version."""
    for folder in _candidates(version):
        if (folder / "initdb").exists() and _major(folder / "postgres") == version:
            return folder
    raise ServerMissing(version)


def _candidates(version: int) -> list[Path]:
    places = [
        Path(f"/usr/lib/postgresql/{version}/bin"),
        Path(f"/usr/pgsql-{version}/bin"),
        Path(f"/opt/homebrew/opt/postgresql@{version}/bin"),
        SERVERS / f"postgresql-{version}" / "bin",
    ]
    on_path = shutil.which("postgres")
    return [*places, Path(on_path).resolve().parent] if on_path else places


def _major(program: Path) -> int | None:
    """`postgres (PostgreSQL) 15.18 (Debian …)` is 15."""
    if not os.access(program, os.X_OK):
        return None
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    return int(answer[2].partition(".")[0]) if len(answer) > 2 else None
