"""Real processes of one system, started through the command line and hurt by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.ledger import SOCKET_VARIABLE, Ledger
from tests.support.processes import alive, send_signal

APPLICATION = "tests.faults.application:app"


class Role:
    """One started program and its descendants."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    def family(self) -> dict[int, str]:
        """The command lines of this process's descendants by pid, itself left out."""
        return {pid: command for pid, command in descendants(self.pid).items() if alive(pid)}

    def worker_pids(self) -> list[int]:
        return [pid for pid, command in self.family().items() if "worker-process" in command]

    def keeper_pids(self) -> list[int]:
        return [pid for pid, command in self.family().items() if "keeper" in command]


class Cluster:
    """Starts roles against one store; `close` ends everything that it started."""

    def __init__(self, store: str, folder: Path, **settings: str) -> None:
        self.store = store
        self.folder = folder
        self.ledger = Ledger(folder / "ledger")
        self.roles: list[Role] = []
        self._known: set[int] = set()
        self._settings = settings

    def start(self, role: str, *arguments: str) -> Role:
        """`mainspring ROLE tests.faults.application:app --store …`."""
        command = [sys.executable, "-m", "mainspring", role, APPLICATION, "--store", self.store, *arguments]
        log = (self.folder / f"{role}-{len(self.roles)}.log").open("wb")
        process = subprocess.Popen(command, env=self._environment(), stdout=log, stderr=log, start_new_session=True)
        started = Role(role, process)
        self.roles.append(started)
        return started

    def migrate(self) -> None:
        command = [sys.executable, "-m", "mainspring", "migrate", "up", "--store", self.store]
        subprocess.run(command, env=self._environment(), check=True, capture_output=True)

    def live(self, name: str) -> list[Role]:
        return [role for role in self.roles if role.name == name and role.process.poll() is None]

    def worker_pids(self) -> list[int]:
        return [pid for role in self.live("worker") for pid in role.worker_pids()]

    def keeper_pids(self) -> list[int]:
        """Keepers outlive the worker that started them, so they are found by the store they serve."""
        return [pid for pid, command in processes().items() if "keeper" in command and self.store in command]

    def await_workers(self, count: int, *, seconds: float = 20.0) -> list[int]:
        deadline = time.monotonic() + seconds
        while len(pids := self.worker_pids()) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(pids)} of {count} worker processes\n{self.logs()}")
            time.sleep(0.02)
        return pids

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.folder.glob("*.log")))

    def close(self) -> None:
        for role in self.roles:
            self._known.update(role.family())
            if role.process.poll() is None:
                self._known.add(role.pid)
        self._known.update(self.keeper_pids())
        for pid in self._known:
            send_signal(pid, signal.SIGCONT)
            send_signal(pid, signal.SIGKILL)
        for role in self.roles:
            role.process.wait(timeout=10)
        self.ledger.close()

    def _environment(self) -> dict[str, str]:
        settings = {f"MAINSPRING_{name.upper()}": value for name, value in self._settings.items()}
        return {**os.environ, **settings, SOCKET_VARIABLE: str(self.ledger.path), "PYTHONPATH": str(Path.cwd())}


def processes() -> dict[int, str]:
    """The command line of every process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    return found


def descendants(root: int) -> dict[int, str]:
    """The command lines of what descends from the process."""
    parents: dict[int, int] = {}
    for pid in processes():
        try:
            parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    commands = processes()
    found: dict[int, str] = {}
    for pid in parents:
        ancestor = pid
        while ancestor in parents and ancestor != root:
            ancestor = parents[ancestor]
        if ancestor == root and pid != root:
            found[pid] = commands.get(pid, "")
    return found
