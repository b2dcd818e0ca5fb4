"""Processes, ports and folders, as the tests' servers need them."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WAIT_SECONDS_MAX = 30


def wait_until(true: Callable[[], bool], what: str, explain: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WAIT_SECONDS_MAX} s: {what}\n{explain()}")
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def unprivileged() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root; then it runs as nobody."""
    return pwd.getpwnam("nobody") if os.getuid() == 0 else None


def temporary_root() -> str:
    root = tempfile.gettempdir()
    return root if open_to_all(Path(root)) else "/var/tmp"


def open_to_all(path: Path) -> bool:
    resolved = path.resolve()
    return all(place.stat().st_mode & 0o001 for place in (resolved, *resolved.parents))


def send_signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def alive(pid: int) -> bool:
    """A zombie that nobody has collected yet is as dead as any."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processor_seconds(pid: int) -> float:
    """What all threads of the process have used of the processor, to the nanosecond; 0 for one that is gone."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks)
    except OSError:
        return 0.0
