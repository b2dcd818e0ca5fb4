"""Opening connections to one file, and the choice of its journal."""

from __future__ import annotations

import os
from pathlib import Path

from mainspring.core.errors import StoreRefuses, StoreUnavailable
from mainspring.stores.sqlite.driver import LIBRARY_VERSION, OLDEST, explain, sqlite3, wal_is_safe
from mainspring.stores.sqlite.session import SQL

BUSY_SECONDS = 10.0
JOURNAL_VARIABLE = "MAINSPRING_SQLITE_JOURNAL"


class File:
    """One SQLite file and how it is opened."""

    def __init__(
        self, path: str | os.PathLike[str], *, journal: str | None = None, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = Path(path)
        self.where = f"the store {self.path}"
        self.locks = self.path.with_name(self.path.name + ".locks")
        self.wanted_journal = (journal or os.environ.get(JOURNAL_VARIABLE) or "wal").lower()
        self.busy_seconds = busy_seconds
        self.wal = False

    def exists(self) -> bool:
        """Whether there is anything in it; an empty file is as good as none."""
        try:
            return self.path.stat().st_size > 0
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreUnavailable(
                f"{self.where} cannot be reached ({error.strerror}); check the path and its permissions"
            ) from error

    def open_writer(self) -> sqlite3.Connection:
        connection = self._connect()
        self.wal = _answer(connection, "journal_mode") == "wal"
        if self.wal and not wal_is_safe():
            connection.close()
            self._leave_wal()
            connection = self._connect()
        for pragma in ("synchronous_full", "cache_size", "temp_in_memory", "checkpoint_pages"):
            connection.execute(SQL[pragma])
        return connection

    def open_reader(self) -> sqlite3.Connection:
        connection = self._connect()
        for pragma in ("temp_in_memory", "query_only"):
            connection.execute(SQL[pragma])
        return connection

    def create(self) -> sqlite3.Connection:
        """A connection that may make the file; only here a journal mode is chosen, never on a file in use."""
        self.check_library()
        new = not self.exists()
        try:
            connection = self._connect(create=True)
            if new:
                connection.execute(SQL["journal_wal" if self._may_use_wal() else "journal_delete"])
            connection.execute(SQL["synchronous_full"])
        except sqlite3.Error as error:
            raise self._create_error(error) from error
        return connection

    def check_library(self) -> None:
        if LIBRARY_VERSION < OLDEST:
            found = ".".join(map(str, LIBRARY_VERSION))
            raise StoreRefuses(
                f"SQLite {found} is too old, 3.35 is the oldest that works; `pip install pysqlite3` helps"
            )

    def _leave_wal(self) -> None:
        """SQLite changes the journal only for whoever is alone on the file, so nothing is flipped under others."""
        connection = self._connect(busy_seconds=0)
        try:
            left = _answer(connection, "journal_delete") != "wal"
        except sqlite3.OperationalError:
            left = False
        finally:
            connection.close()
        if not left:
            found = ".".join(map(str, LIBRARY_VERSION))
            raise StoreRefuses(
                f"{self.where} is in WAL mode and in use, and SQLite {found} of this program can lose commits in that "
                "mode; stop the other programs for a moment and start again, or `pip install pysqlite3` here"
            )
        self.wal = False

    def _may_use_wal(self) -> bool:
        return self.wanted_journal != "delete" and wal_is_safe()

    def _connect(self, *, create: bool = False, busy_seconds: float | None = None) -> sqlite3.Connection:
        """The C library waits for locks, without Python."""
        mode = "rwc" if create else "rw"
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self.busy_seconds if busy_seconds is None else busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )

    def _create_error(self, error: sqlite3.Error) -> Exception:
        folder = self.path.absolute().parent
        if folder.is_dir() and not os.access(folder, os.W_OK):
            return StoreRefuses(
                f"{self.where} cannot be made: the folder {folder} is not writable for this user; "
                "make it writable or choose another path"
            )
        return explain(error, self.where) or error


def _answer(connection: sqlite3.Connection, name: str) -> str:
    (mode,) = connection.execute(SQL[name]).fetchone()
    return str(mode).lower()
