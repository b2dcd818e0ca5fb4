"""Roles in processes of their own, started by the command line that users start them by."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mainspring.bench.machine import cpu_seconds, family

APP = "mainspring.bench.tasks:app"
_READY_SECONDS_MAX = 30.0
_STOP_SECONDS_MAX = 15.0


class Role:
    """A started role with all its processes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def cpu_seconds(self) -> float:
        return cpu_seconds(family(self._process.pid))

    @property
    def processes(self) -> int:
        return len(family(self._process.pid))

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None


@asynccontextmanager
async def started(role: str, store: str, *flags: str) -> AsyncIterator[Role]:
    """`mainspring ROLE` on this store, from when it says that it is ready until the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "mainspring", role, APP, "--store", store, "--log-level", "warning", *flags),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        await _await_ready(process, role)
        yield Role(process)
    finally:
        await _stop(process)


async def _await_ready(process: asyncio.subprocess.Process, role: str) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(_READY_SECONDS_MAX):
        line = await process.stdout.readline()
    if not line.startswith(b"ready"):
        raise RuntimeError(f"mainspring {role} did not start (exit code {await process.wait()}); its log says why")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_SECONDS_MAX):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
