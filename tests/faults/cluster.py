"""Real processes of one system, started through the command line and hurt by pid."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.faults.ledger import SOCKET_VARIABLE, Ledger
from tests.support.processes import send_signal, wait_until
from tests.support.program import clean_environment

APPLICATION = "tests.faults.application:app"
ROOT = Path(__file__).parents[2]


class Seen(NamedTuple):
    """A process of ours, as /proc shows it."""

    pid: int
    parent: int
    state: str
    command: str
    host: str


class Role:
    """One started program. `host` has a keeper of its own, as another machine would."""

    def __init__(self, name: str, host: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.host = host
        self.process = process
        self.leaving = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def terminate(self) -> None:
        self.leaving = True
        self.process.terminate()

    def kill(self) -> None:
        """Its worker processes die with it, since their lifeline breaks."""
        self.leaving = True
        self.process.kill()
        self.process.wait()


class Cluster:
    """Starts roles against one store; `close` ends everything that it started, and whatever those started."""

    def __init__(self, store: str, folder: Path, **settings: str) -> None:
        self.store = store
        self.folder = folder
        # A socket's path has to be short.
        self._runtime = Path(tempfile.mkdtemp(prefix="msf-"))
        self.ledger = Ledger(self._runtime / "ledger")
        self.roles: list[Role] = []
        self._settings = {"log_level": "info"} | settings

    def start(self, role: str, *arguments: str, host: str = "a") -> Role:
        """`mainspring ROLE tests.faults.application:app --store …`."""
        (self._runtime / host).mkdir(exist_ok=True)
        command = [sys.executable, "-m", "mainspring", role, APPLICATION, "--store", self.store, *arguments]
        with (self.folder / f"{len(self.roles):02}-{role}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment(host),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started = Role(role, host, process)
        self.roles.append(started)
        return started

    def migrate(self) -> None:
        command = [sys.executable, "-m", "mainspring", "migrate", "up", "--store", self.store]
        subprocess.run(command, cwd=ROOT, env=self._environment("a"), check=True, capture_output=True)

    def live(self, name: str) -> list[Role]:
        """Those that run and were not asked to leave."""
        return [role for role in self.roles if role.name == name and role.process.poll() is None and not role.leaving]

    def worker_pids(self, role: Role | None = None, *, host: str | None = None) -> list[int]:
        workers = {seen.pid: seen for seen in self.processes() if "worker-process" in seen.command}
        return [
            pid
            for pid, seen in workers.items()
            if seen.parent not in workers  # a keeper that is not executed yet has its worker's line
            and (role is None or seen.parent == role.pid)
            and host in (None, seen.host)
        ]

    def keeper_pids(self, *, host: str | None = None) -> list[int]:
        return [seen.pid for seen in self.processes() if "keeper_main" in seen.command and host in (None, seen.host)]

    def await_workers(self, count: int) -> None:
        """Until the store has seen that many start, by what they log."""
        wait_until(lambda: self.logs().count("worker started") >= count, f"{count} workers have started", self.logs)

    def processes(self) -> list[Seen]:
        """Everything that carries this cluster's mark and is not dead."""
        found = (look_at(int(entry.name), self._mark()) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [seen for seen in found if seen is not None and seen.state not in "ZX"]

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()}" for path in sorted(self.folder.glob("*.log")))

    def bugs(self) -> list[str]:
        """Where a program met an error that it did not expect, though it may have gone on afterwards."""
        logs = self.logs()
        return [logs[max(0, found.start() - 300) : found.end() + 3000] for found in re.finditer("Traceback", logs)]

    def close(self) -> None:
        """By pid, again until nothing is left: what is killed may have been starting something."""

        def nothing_left() -> bool:
            left = self.processes()
            for seen in left:
                send_signal(seen.pid, signal.SIGKILL)
            return not left

        for role in self.roles:
            role.leaving = True
        wait_until(nothing_left, "the cluster's processes are gone")
        for role in self.roles:
            role.process.wait(timeout=10)
        self.ledger.close()
        shutil.rmtree(self._runtime, ignore_errors=True)

    def _mark(self) -> bytes:
        return f"{SOCKET_VARIABLE}={self.ledger.path}".encode()

    def _environment(self, host: str) -> dict[str, str]:
        settings = {f"MAINSPRING_{name.upper()}": value for name, value in self._settings.items()}
        mark = {SOCKET_VARIABLE: str(self.ledger.path), "XDG_RUNTIME_DIR": str(self._runtime / host)}
        return clean_environment(settings | mark)


def look_at(pid: int, mark: bytes) -> Seen | None:
    """None for a process that does not carry the mark in its environment."""
    place = Path(f"/proc/{pid}")
    try:
        variables = (place / "environ").read_bytes().split(b"\0")
        if mark not in variables:
            return None
        fields = (place / "stat").read_text().rpartition(")")[2].split()
        command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    runtime = next((value for value in variables if value.startswith(b"XDG_RUNTIME_DIR=")), b"")
    return Seen(pid, int(fields[1]), fields[0], command, os.fsdecode(runtime.rpartition(b"/")[2]))
