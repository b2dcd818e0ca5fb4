"""Which keeper a worker process has: one a host, user and store."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from mainspring import __version__
from mainspring.app.stores import sqlite_path
from mainspring.config import Settings
from mainspring.core.errors import StoreRefuses
from mainspring.worker.keeper_link import KeeperLink


def keeper_link(settings: Settings) -> KeeperLink | None:
    """None for a store that no other process can open."""
    if settings.store.startswith("memory"):
        return None
    path = runtime_folder() / f"{_name_of(settings.store)}.sock"
    return KeeperLink(
        path,
        [sys.executable, "-m", "mainspring.keeper_main", "--socket", str(path)],
        # Not among the arguments: everybody on the machine may read those.
        environment={"MAINSPRING_STORE": settings.store},
        lease=settings.lease,
        beat=settings.heartbeat,
        stall=settings.lease // 3,
    )


def runtime_folder() -> Path:
    """A folder of this user alone, with a path short enough for a socket."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"mainspring-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat(follow_symlinks=False)
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        raise StoreRefuses(f"{folder} is not a folder of this user alone; remove it, or set XDG_RUNTIME_DIR")
    return folder


def _name_of(store: str) -> str:
    place = str(sqlite_path(store).resolve()) if store.startswith("sqlite") else store
    return hashlib.blake2b(f"{__version__}\n{place}".encode(), digest_size=10).hexdigest()
