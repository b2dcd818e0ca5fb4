"""What ties a worker process to its supervisor: a socket pair.

The supervisor first sends the settings, then orders, a line each; the child says when it is ready, by
which id it goes, and now and then what it has added up for the metrics. When the line breaks, the supervisor is gone: then the child dies at once, so that killing the supervisor is never survived by half
of the program. Its keeper sees that death like any other.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from mainspring.config import Settings, from_texts

# The child's words, without the end of the line.
WORKER = b"worker "  # and its id: it is registered, and goes by this id from now on
LEAVING = b"leaving"  # it drains of itself, to be replaced; another one may start already
LEFT_THREADS = b"left threads"  # it ends with handlers in threads that only its end will stop
# The supervisor's, with it.
STOP = b"stop\n"
STOP_NOW = b"now\n"
_LINE_BYTES_MAX = 1 << 20


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
        self._reader = self._socket.makefile("rb")
        self.assignment = Assignment.decode(self._reader.readline(_LINE_BYTES_MAX))

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
        while True:
            try:
                line = self._reader.readline(_LINE_BYTES_MAX)
            except OSError:
                line = b""
            if not line:
                os.kill(os.getpid(), signal.SIGKILL)
            obey(line)
