"""The keeper's process: `python -m mainspring.keeper_main --socket PATH`, the store's URL in MAINSPRING_STORE.

It imports only the store it needs, so that it stays small; the URL comes by the environment, since it may hold a password.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store
from mainspring.worker.keeper import keep


def main() -> None:
    parser = argparse.ArgumentParser(prog="mainspring keeper", description=__doc__)
    parser.add_argument("--store", default=os.environ.get("MAINSPRING_STORE", ""))
    parser.add_argument("--socket", type=Path, required=True)
    chosen = parser.parse_args()
    if not chosen.store:
        parser.error("which store? set MAINSPRING_STORE or pass --store URL")
    # Its output would keep pipes open beyond the end of whoever started it; so its log lies beside its socket.
    form = "%(asctime)s %(levelname)s %(name)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form, filename=chosen.socket.with_suffix(".log"), filemode="w")
    keep(lambda: open_store(chosen.store), SystemClock(), chosen.socket)


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
