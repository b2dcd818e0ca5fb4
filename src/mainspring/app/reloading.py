"""`up --reload`: worker processes are replaced when the code in the working folder changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from mainspring.app.child import Child
from mainspring.app.supervisor import Supervisor

LOOK_EVERY_SECONDS = 0.5
_NOT_OURS = frozenset({"node_modules", "site-packages", "__pycache__"})

_log = logging.getLogger("mainspring.app")


@contextlib.asynccontextmanager
async def reloading(supervisor: Supervisor[Child], seen: dict[str, int]) -> AsyncIterator[None]:
    """Watches while the block lasts. `seen` is the code as it was before the workers read it."""
    task = asyncio.create_task(_watch(Path.cwd(), supervisor, seen), name="reload")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(folder: Path, supervisor: Supervisor[Child], seen: dict[str, int]) -> None:
    while True:
        now = await asyncio.to_thread(code_of, folder)
        if now != seen:
            changed = sorted(dict(now.items() ^ seen.items()))
            _log.info("%s changed; worker processes start anew", ", ".join(changed[:3]))
            seen = now
            await supervisor.replace_all()
        await asyncio.sleep(LOOK_EVERY_SECONDS)


def code_of(folder: Path) -> dict[str, int]:
    """Each Python file below the folder and when it changed; environments and hidden folders are not looked at."""
    return dict(_files(folder, folder))


def _files(root: Path, folder: Path) -> Iterator[tuple[str, int]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _NOT_OURS:
            continue
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                yield from _files(root, Path(entry.path))
            elif entry.name.endswith(".py"):
                yield str(Path(entry.path).relative_to(root)), entry.stat().st_mtime_ns
