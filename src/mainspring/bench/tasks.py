"""The application whose tasks the workloads submit."""

from __future__ import annotations

import time

from mainspring.app.application import Mainspring

app = Mainspring()


@app.task
async def nothing() -> None:
    """What a run costs when its handler costs nothing."""


@app.task
async def stamp(sent: int) -> int:  # noqa: ARG001 - it is read from the stored payload
    """When the handler started, on the monotonic clock that all processes of a machine share."""
    return time.monotonic_ns()
