"""Ends a test server whose owner is gone, however it went: `reaper.py FOLDER` waits until its standard input closes.

The kernel closes that pipe when the owner ends, even by SIGKILL. A server that is gone already costs nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    folder = Path(sys.argv[1])
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    sys.stdin.read()
    pid = server_pid(folder)
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGQUIT)
        _wait_until_gone(folder, pid)
    shutil.rmtree(folder, ignore_errors=True)


def server_pid(folder: Path) -> int | None:
    """The server that runs in this folder now; a number left by a dead one is not believed."""
    try:
        pid = int((folder / "data/postmaster.pid").read_text().split("\n", 1)[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if str(folder).encode() in command else None


def _wait_until_gone(folder: Path, pid: int) -> None:
    deadline = time.monotonic() + 10
    while server_pid(folder) == pid and time.monotonic() < deadline:
        time.sleep(0.02)


if __name__ == "__main__":
    main()
