"""A worker process as its supervisor holds it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from uuid import UUID

from mainspring.app.lifeline import LEAVING, LEFT_THREADS, STOP, STOP_NOW, WORKER, Assignment
from mainspring.core.model import SECOND
from mainspring.worker.charge import stands_still

DRAINED_BY_ORDER = 64  # the exit code of a worker process that somebody asked to drain: it is not replaced
LAST_WORDS_SECONDS = 0.5
KILL_AFTER_SECONDS = 3.0
LOOK_EVERY_SECONDS = 0.5
OWN_PAUSE_SECONDS = 3.0  # a look that comes so much later than the last: the supervisor itself stood still

_log = logging.getLogger("mainspring.supervisor")


class Child:
    """Started by exec, never by fork: nothing of the supervisor's threads, loops and locks reaches it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        line: socket.socket,
        hear_sums: Callable[[bytes], None],
        stall_seconds: float,
    ) -> None:
        self._hear_sums = hear_sums
        self.worker: UUID | None = None
        self.left_threads = False
        self.leaving = asyncio.Event()
        self.pid = process.pid
        self._process = process
        self._line = line
        self.ready = asyncio.Event()
        self._stalled = False
        self._listening = asyncio.create_task(self._listen(), name=f"lifeline-{self.pid}")
        self._watching = asyncio.create_task(self._watch(stall_seconds), name=f"stall-{self.pid}")

    @classmethod
    async def start(cls, assignment: Assignment, hear_sums: Callable[[bytes], None]) -> Child:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "mainspring", "worker-process", assignment.app]
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--lifeline",
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                # What handlers print is no answer of ours: standard output belongs to the line that says `ready`.
                stdout=sys.stderr.fileno(),
            )
        ours.setblocking(False)
        child = cls(process, ours, hear_sums, assignment.settings.lease / 3 / SECOND)
        await child._send(assignment.encode())
        return child

    async def wait(self) -> int:
        """Its exit code, negative for a signal."""
        code = await self._process.wait()
        self._watching.cancel()
        # Its last words are on the line, unless something that it left behind still holds the other end.
        await asyncio.wait((self._listening,), timeout=LAST_WORDS_SECONDS)
        self._listening.cancel()
        self._line.close()
        return code

    async def drain(self) -> None:
        if self._stalled and stands_still(self.pid):
            self.kill()  # it has lost its runs, and can finish nothing
        await self._send(STOP + b"\n")

    async def stop_now(self) -> None:
        """Gives it a moment to give back what it holds, then ends it, stopped processes too."""
        await self._send(STOP_NOW + b"\n")
        try:
            async with asyncio.timeout(KILL_AFTER_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()

    def resume(self) -> None:
        """It stopped because the supervisor was stopped."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    async def _watch(self, stall_seconds: float) -> None:
        """Once it has stood still so long that its runs are given to others, somebody must be there to take them.

        It is not killed: it may be looked at by a debugger. When it goes on, it finds the order to drain.
        """
        since = looked_at = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            now = time.monotonic()
            if now - looked_at > OWN_PAUSE_SECONDS or not stands_still(self.pid):
                since = now
            looked_at = now
            if now - since >= stall_seconds:
                _log.warning("worker process %d has been stopped for %.0f s", self.pid, now - since)
                self._stalled = True
                await self._send(STOP + b"\n")
                self.leaving.set()
                return

    async def _send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._line, line)

    async def _listen(self) -> None:
        heard = b""
        with contextlib.suppress(OSError):
            while said := await asyncio.get_running_loop().sock_recv(self._line, 1 << 16):
                *lines, heard = (heard + said).split(b"\n")
                for line in lines:
                    self._hear(line)

    def _hear(self, line: bytes) -> None:
        if line.startswith(WORKER):
            self.worker = UUID(line.removeprefix(WORKER).decode())
            self.ready.set()
        elif line == LEAVING:
            self.leaving.set()
        elif line == LEFT_THREADS:
            self.left_threads = True
        else:
            self._hear_sums(line)
