"""What ties a worker process to its supervisor: a socket pair.

The supervisor first sends the settings, then orders, a line each; the child says when it is ready, by
which id it goes, and now and then what it has added up for the metrics. When the line breaks, the supervisor is gone: then the child dies at once, so that killing the supervisor is never survived by half
of the program. Its keeper sees that death like any other. And where the supervisor is stopped, the child stops too,
until the supervisor goes on: whoever stops "the worker" by the number it was started under, stops the work.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mainspring.config import Settings, from_texts

# The child's words.
WORKER = b"worker "  # and its id: it is registered, and goes by this id from now on
LEAVING = b"leaving"  # it drains of itself, to be replaced; another one may start already
LEFT_THREADS = b"left threads"  # it ends with handlers in threads that only its end will stop
# The supervisor's.
STOP = b"stop"
STOP_NOW = b"now"
LOOK_EVERY_SECONDS = 0.25
_LINE_BYTES_MAX = 1 << 20
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker process is told at birth."""

    app: str
    settings: Settings

    def encode(self) -> bytes:
        return json.dumps({"app": self.app, "settings": self.settings.as_texts()}).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> Assignment:
        told = json.loads(line)
        return cls(told["app"], from_texts(told["settings"]))


class Lifeline:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        # What a handler starts must not hold the line.
        self._socket.set_inheritable(False)
        self._supervisor = os.getppid()
        _die_with_supervisor()
        self.assignment = Assignment.decode(self._first_line())

    def _first_line(self) -> bytes:
        """Byte by byte, so that no order that follows is taken with it."""
        line = bytearray()
        while not line.endswith(b"\n") and len(line) < _LINE_BYTES_MAX:
            said = self._socket.recv(1)
            if not said:
                raise SystemExit("the supervisor was gone before it said what to do")
            line += said
        return bytes(line)

    def listen(self, obey: Callable[[bytes], None]) -> None:
        """Calls `obey` with each order, in a thread of its own that even a blocked event loop cannot hold up."""
        threading.Thread(target=self._listen, args=(obey,), name="mainspring-lifeline", daemon=True).start()

    def say(self, line: bytes) -> None:
        """One line to the supervisor; nothing if it is gone, which `listen` takes care of."""
        try:
            self._socket.sendall(line + b"\n")
        except OSError:
            return

    def _listen(self, obey: Callable[[bytes], None]) -> None:
        heard = b""
        while True:
            readable, _, _ = select.select([self._socket], [], [], LOOK_EVERY_SECONDS)
            if not readable:
                _stop_with(self._supervisor)
                continue
            said = self._receive()
            if not said:
                os.kill(os.getpid(), signal.SIGKILL)
            *orders, heard = (heard + said).split(b"\n")
            for order in orders:
                obey(order)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(1 << 16)
        except OSError:
            return b""


def _die_with_supervisor() -> None:
    """A stopped process does not see its line break; the kernel sees to that one, where it can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop_with(supervisor: int) -> None:
    try:
        state = Path(f"/proc/{supervisor}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return
    if state == "T":
        os.kill(os.getpid(), signal.SIGSTOP)
