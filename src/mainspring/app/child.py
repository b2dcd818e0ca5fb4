"""A worker process as its supervisor holds it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys

from mainspring.app.lifeline import READY, STOP, STOP_NOW, Assignment

DRAINED_BY_ORDER = 64  # the exit code of a worker process that somebody asked to drain: it is not replaced
KILL_AFTER_SECONDS = 3.0


class Child:
    """Started by exec, never by fork: nothing of the supervisor's threads, loops and locks reaches it."""

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket) -> None:
        self.pid = process.pid
        self._process = process
        self._line = line
        self.ready = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(), name=f"lifeline-{self.pid}")

    @classmethod
    async def start(cls, assignment: Assignment) -> Child:
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
        child = cls(process, ours)
        await child._send(assignment.encode())
        return child

    async def wait(self) -> int:
        """Its exit code, negative for a signal."""
        code = await self._process.wait()
        self._listening.cancel()
        self._line.close()
        return code

    async def drain(self) -> None:
        await self._send(STOP)

    async def stop_now(self) -> None:
        """Gives it a moment to give back what it holds, then ends it, stopped processes too."""
        await self._send(STOP_NOW)
        try:
            async with asyncio.timeout(KILL_AFTER_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)

    async def _send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._line, line)

    async def _listen(self) -> None:
        heard = b""
        with contextlib.suppress(OSError):
            while said := await asyncio.get_running_loop().sock_recv(self._line, 256):
                heard += said
                if READY in heard:
                    self.ready.set()
                    heard = b""
