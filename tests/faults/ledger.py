"""The outside ledger: a server of its own on a UNIX socket that nothing faults. Handlers tell it what they do."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

SOCKET_VARIABLE = "MAINSPRING_TEST_LEDGER"


@dataclass(frozen=True, slots=True)
class Line:
    """`seq` is a total order; `at` is CLOCK_MONOTONIC, which all processes of a machine share."""

    seq: int
    at: float
    kind: str
    run: str
    job: str
    attempt: int
    fence: int
    pid: int


class Ledger:
    """Appends lines in the order in which they arrive, each acknowledged before the handler goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self._changed = threading.Condition()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen(512)
        threading.Thread(target=self._accept, name="ledger", daemon=True).start()

    def close(self) -> None:
        self._server.close()
        self.path.unlink(missing_ok=True)

    def of(self, kind: str) -> list[Line]:
        with self._changed:
            return [line for line in self.lines if line.kind == kind]

    def wait_for(self, kind: str, count: int, *, seconds: float = 30.0, run: str | None = None) -> list[Line]:
        """The lines of a kind, once there are that many."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = [line for line in self.lines if line.kind == kind and run in (None, line.run)]
                if len(found) >= count:
                    return found
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"{len(found)} of {count} lines {kind!r} within {seconds} s")

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            for text in stream:
                told = json.loads(text)
                with self._changed:
                    self.lines.append(Line(len(self.lines), **told))
                    self._changed.notify_all()
                try:
                    stream.write(b"\n")
                    stream.flush()
                except OSError:
                    return


class LedgerClient:
    """One connection a process and thread; blocking, since a line takes microseconds."""

    def __init__(self) -> None:
        self._local = threading.local()

    def tell(self, kind: str, run: str, job: str, attempt: int, fence: int) -> None:
        stream = getattr(self._local, "stream", None)
        if stream is None or self._local.pid != os.getpid():
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(os.environ[SOCKET_VARIABLE])
            stream = self._local.stream = connection.makefile("rwb")
            self._local.pid = os.getpid()
        line = {
            "at": time.monotonic(),
            "kind": kind,
            "run": run,
            "job": job,
            "attempt": attempt,
            "fence": fence,
            "pid": os.getpid(),
        }
        stream.write(json.dumps(line).encode() + b"\n")
        stream.flush()
        stream.readline()
