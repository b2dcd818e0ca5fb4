"""One process that a keeper watches, and what is known of it."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import UUID

from mainspring.core.model import SECOND, Evidence
from mainspring.worker.board import SeenBoard


class Writer(Protocol):
    def write(self, line: bytes, /) -> None: ...

    def is_closing(self) -> bool: ...


class Charge:
    """The handle (a pidfd) stands for this very process, whoever gets its number later."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle = os.pidfd_open(pid)
        self.worker: UUID | None = None
        self.writer: Writer | None = None
        self.board: SeenBoard | None = None
        self.beat = 3.0
        self.stall = 10.0
        self.draining = False
        self.left = False
        self.declared = False  # what it goes by now has been declared lost
        self.culprit: UUID | None = None
        self.killed = False
        self.stopped_since: float | None = None
        self.heard_out = asyncio.Event()  # what it wrote before its end has been read
        self.heard_out.set()

    def greet(self, letter: dict[str, object], writer: Writer) -> None:
        """The worker says who it is, at first, after it took another id, or to a new keeper."""
        worker = UUID(str(letter["worker"]))
        if worker != self.worker:
            self.worker, self.declared = worker, False
        self.writer = writer
        self.beat = _seconds(letter["beat"])
        self.stall = _seconds(letter["stall"])
        self.hear(letter)
        if self.board is None:
            with suppress(OSError):
                self.board = SeenBoard(str(letter["board"]))

    def hear(self, letter: dict[str, object]) -> None:
        self.draining = self.draining or bool(letter.get("drain"))
        self.left = self.left or bool(letter.get("bye"))

    @property
    def renewable(self) -> bool:
        return self.worker is not None and not self.declared and not self.left

    @property
    def evidence(self) -> Evidence:
        """What its end stands for."""
        if self.killed:
            return Evidence.KILL
        return Evidence.DRAIN if self.draining else Evidence.DEATH

    def stopped_for(self, now: float) -> float:
        """How long it has been seen stopped."""
        if not stands_still(self.pid):
            self.stopped_since = None
            return 0.0
        if self.stopped_since is None:
            self.stopped_since = now
        return now - self.stopped_since

    def kill(self, culprit: UUID | None) -> None:
        self.killed, self.culprit = True, culprit
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def tell(self, line: bytes) -> None:
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(line)

    def close(self) -> None:
        os.close(self.handle)
        if self.board is not None:
            self.board.close()


def stands_still(pid: int) -> bool:
    """Whether somebody has stopped the process (SIGSTOP, Ctrl-Z, a debugger)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return fields[fields.rindex(b")") + 2 : fields.rindex(b")") + 3] in (b"T", b"t")


def _seconds(duration: object) -> float:
    assert isinstance(duration, int)
    return duration / SECOND
