"""The outside ledger: a server of its own on a UNIX socket that nothing faults. Handlers tell it what they do."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress
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
        self._changed = threading.Condition(threading.RLock())
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen(512)
        self._thread = threading.Thread(target=self._accept, name="ledger", daemon=True)
        self._thread.start()

    def close(self) -> None:
        # A close alone does not wake the thread that waits in accept.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)
        self.path.unlink(missing_ok=True)

    def of(self, kind: str, run: object = None) -> list[Line]:
        with self._changed:
            return [line for line in self.lines if line.kind == kind and (run is None or line.run == str(run))]

    def wait_for(self, kind: str, count: int, *, seconds: float = 30.0, run: object = None) -> list[Line]:
        """The lines of a kind, once there are that many."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while len(found := self.of(kind, run)) < count:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise TimeoutError(f"{len(found)} of {count} lines {kind!r} within {seconds} s")
            return found

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Whoever tells may be killed in the middle of a line: half a line counts as not told."""
        with connection:
            heard = b""
            with suppress(OSError):
                while received := connection.recv(65536):
                    *lines, heard = (heard + received).split(b"\n")
                    for line in lines:
                        self._write_down(line)
                        connection.sendall(b"\n")

    def _write_down(self, line: bytes) -> None:
        told = json.loads(line)
        with self._changed:
            self.lines.append(Line(len(self.lines), **told))
            self._changed.notify_all()


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
