"""What a worker and its keeper are to each other, whatever lies between them."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol
from uuid import UUID

from mainspring.core.model import BeatAnswer
from mainspring.worker.slots import Board


class Kept(Protocol):
    """The worker as its keeper's link sees it; called in the worker's event loop, but for `current`."""

    def acknowledged(self, worker: UUID, sent: float, answer: BeatAnswer) -> None: ...

    def kept(self, pid: int) -> None:
        """A keeper has been found or started, for the first time or again."""
        ...

    def unkept(self) -> None:
        """The keeper has gone; another one is being looked for."""
        ...

    def current(self, task: asyncio.Task[Any] | None) -> tuple[UUID, int] | None:
        """The run (and its fence) that this task of the event loop carries out; callable from any thread."""
        ...


class Keeping(Protocol):
    """The keeper as a worker sees it. Nothing here waits, and nothing raises: without a keeper all goes on, slower."""

    def start(self, kept: Kept, worker: UUID) -> Board:
        """Finds the host's keeper or starts one, and sees to it that there always is one."""
        ...

    def announce(self, worker: UUID) -> None:
        """The process goes by this id from now on."""
        ...

    def drain(self) -> None:
        """The process is about to end with handlers still running: its death is to be told as the end of a drain."""
        ...

    def bye(self) -> None:
        """The process holds nothing any more: its end needs no telling."""
        ...

    def close(self) -> None: ...
