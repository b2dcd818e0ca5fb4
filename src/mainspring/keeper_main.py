"""The keeper's process: `python -m mainspring.keeper_main --socket PATH`, the store's URL in MAINSPRING_STORE.

It imports only the store it needs, so that it stays small; the URL comes by the environment, since it may hold a password.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store
from mainspring.worker.keeper import keep


def main() -> None:
    options = read_options(sys.argv[1:])
    store, path = options.get("--store") or os.environ.get("MAINSPRING_STORE"), options.get("--socket")
    if not store or not path:
        raise SystemExit("usage: python -m mainspring.keeper_main --socket PATH [--store URL], or MAINSPRING_STORE=URL")
    # A worker that starts it points this at a file beside the socket.
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, stream=sys.stderr)
    keep(lambda: open_store(store), SystemClock(), Path(path))


def read_options(words: Sequence[str]) -> dict[str, str]:
    """Names and values in turn: all it needs, without half a megabyte of argument parser."""
    return dict(zip(words[::2], words[1::2], strict=False))


def open_store(url: str) -> Store:
    """The same stores as an application's, without what an application brings along."""
    scheme, _, place = url.partition("://")
    if scheme == "sqlite":
        from mainspring.stores.sqlite.store import SqliteStore

        return SqliteStore(Path.cwd() / place.removeprefix("/"))
    if scheme in ("postgresql", "postgres"):
        from mainspring.stores.postgres.store import PostgresStore

        return PostgresStore(url)
    raise SystemExit(f"{scheme}:// is no store that processes share; it can be sqlite:// or postgresql://")


if __name__ == "__main__":
    main()
