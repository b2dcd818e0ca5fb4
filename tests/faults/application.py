"""The application that the fault tests run: every handler writes to the ledger."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from mainspring import Mainspring, current_run
from tests.faults.ledger import LedgerClient

app = Mainspring()
ledger = LedgerClient()


def tell(kind: str) -> None:
    run = current_run()
    ledger.tell(kind, run.id, run.job_id, run.attempt, run.fence)


@app.task(retry={"max_attempts": 20, "initial": "0.2s", "max": "1s"})
async def work(seconds: float = 0.0) -> str:
    """Succeeds after some time."""
    tell("start")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        tell("cancelled")
        raise
    tell("end")
    return "done"


@app.task(retry={"max_attempts": 20, "initial": "0.2s", "max": "1s"})
async def flaky(seconds: float = 0.0) -> str:
    """Fails the first time."""
    tell("start")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        tell("cancelled")
        raise
    if current_run().attempt == 1:
        tell("failed")
        raise RuntimeError("flaky")
    tell("end")
    return "done"


@app.task(retry={"max_attempts": 20, "initial": "0.2s", "max": "1s"})
def threaded(seconds: float = 0.0) -> str:
    """The same in a thread, which says again and again that it is still there."""
    tell("start")
    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0:
        time.sleep(min(0.05, left))
        tell("tick")
    tell("end")
    return "done"


@app.task(retry={"max_attempts": 10, "initial": "0.1s"})
async def poison() -> None:
    """Kills its process."""
    tell("start")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(timeout="2s", cancel_grace="1s", retry={"max_attempts": 1})
async def blocks(seconds: float = 60.0) -> None:
    """Blocks the event loop far past its timeout."""
    tell("start")
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    tell("end")
