"""The HTTP server beside other parts of one process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn

from mainspring.api.server import build
from mainspring.client.direct import Direct
from mainspring.observe.metrics import Metrics
from mainspring.web.pages import pages

STOP_SECONDS_MAX = 2


class _Server(uvicorn.Server):
    """One that leaves signals to the program it is a part of, and says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()


@contextlib.asynccontextmanager
async def serving(direct: Direct, metrics: Metrics, listener: socket.socket) -> AsyncIterator[None]:
    """Answers HTTP while the block lasts."""
    app = build(direct, metrics=metrics, pages=pages(direct))
    # What it tells of its own life, the program tells already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    answering = asyncio.create_task(server.answers.wait())
    try:
        await asyncio.wait((task, answering), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            raise RuntimeError("the HTTP server ended before it answered")
        yield
    finally:
        answering.cancel()
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
