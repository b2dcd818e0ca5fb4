"""The HTTP face on a real port, in a thread of this process, over a memory store."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from mainspring.api.server import build
from mainspring.client.direct import Direct
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.stores.memory import MemoryStore
from mainspring.web.pages import pages


@contextmanager
def live_server(store: MemoryStore | None = None) -> Iterator[str]:
    """Its address, while the block lasts."""
    direct = Direct(store or MemoryStore(), SystemClock(), Bus())
    config = uvicorn.Config(build(direct, pages=pages(direct)), log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
