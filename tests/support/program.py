"""`mainspring` as a program: started in a folder, asked over HTTP and by its command line, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.processes import wait_until

READY_SECONDS_MAX = 20.0
END_SECONDS_MAX = 40.0

TASKS = """
import asyncio, os, time
from mainspring import Discard, Mainspring, current_run

app = Mainspring()

@app.task
async def add(a: int, b: int) -> int:
    current_run().log.info("adding", a=a)
    return a + b

@app.task(retry={"max_attempts": 1})
def fail(why: str = "no") -> None:
    raise ValueError(why)

@app.task
async def sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"

@app.task(retry={"max_attempts": 3, "initial": "10ms"})
async def die_once(marker: str) -> int:
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), 9)
    return os.getpid()

@app.task
async def pid() -> int:
    return os.getpid()
"""


class Program:
    """A role, or several, running; what it says on standard error is kept for the message of a failing test."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.address = ""
        self.out: list[str] = []
        self.log: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mainspring", *arguments],
            cwd=folder,
            env=clean_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._readers = [
            threading.Thread(target=self._read, args=("stdout",), daemon=True),
            threading.Thread(target=self._read, args=("stderr",), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if error is not None:
            error.add_note(f"the program said:\n{''.join(self.log)[-8000:]}")

    def wait_ready(self) -> Self:
        """Until it says so; `ready_after` is how long that took."""
        deadline = self.started_at + READY_SECONDS_MAX
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"not ready within {READY_SECONDS_MAX} s:\n{''.join(self.log)}") from None
            if line.startswith("ready"):
                self.ready_after = time.monotonic() - self.started_at
                self.address = line.removeprefix("ready").strip()
                return self

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = END_SECONDS_MAX) -> int:
        code = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(5)
        return code

    def stop(self) -> int:
        """Asks for the end, as a service manager does; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Ends it and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        for reader in self._readers:
            reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def children(self) -> dict[int, str]:
        """Its worker processes: number and command line. A worker's keeper has the worker's line until it is executed."""
        lines = descendants(self.process.pid)
        return {
            pid: line for pid, line in lines.items() if "worker-process" in line and parent_of(pid) == self.process.pid
        }

    def get(self, path: str) -> dict[str, object]:
        return self.call("GET", path)[1]

    def post(self, path: str, body: object = None) -> dict[str, object]:
        status, answer = self.call("POST", path, body)
        assert status < 300, answer
        return answer

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")

    def wait_for_run(self, identity: object, true: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        """The run once it is as asked."""
        found: dict[str, object] = {}

        def look() -> bool:
            found.clear()
            found.update(self.get(f"/v1/runs/{identity}"))
            return true(found)

        wait_until(look, f"run {identity} is as asked", lambda: f"{found}\n{''.join(self.log)[-4000:]}")
        return found

    def _read(self, name: str) -> None:
        stream = getattr(self.process, name)
        for line in stream:
            (self.out if name == "stdout" else self.log).append(line)
            if name == "stdout":
                self._lines.put(line)


def mainspring(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """One command, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "mainspring", *arguments],
        cwd=folder,
        env=clean_environment(environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def clean_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Without settings that the machine of the test happens to have."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAINSPRING_")} | dict(more or {})


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants(pid: int) -> dict[int, str]:
    """Every process below this one, with its command line."""
    parents: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        parent = parent_of(int(place.parent.name))
        if parent is not None:
            parents.setdefault(parent, []).append(int(place.parent.name))
    found: dict[int, str] = {}
    waiting = list(parents.get(pid, []))
    while waiting:
        each = waiting.pop()
        waiting += parents.get(each, [])
        try:
            found[each] = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found
