"""The one place that imports SQLite, and what must be known of the library that was found.

Where pysqlite3 is installed it brings its own, newer SQLite; elsewhere Python's own serves. Libraries from 3.7.0 to
3.51.2 can lose committed writes in WAL mode when one connection writes while another one resets the log
(sqlite.org/wal.html#walresetbug): with those the store does without WAL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.core.errors import MainspringError, StoreRefuses, StoreUnavailable

if TYPE_CHECKING:
    import sqlite3
else:
    try:
        from pysqlite3 import dbapi2 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["LIBRARY_VERSION", "OLDEST", "explain", "sqlite3", "wal_is_safe"]

Version = tuple[int, int, int]

OLDEST: Version = (3, 35, 0)  # RETURNING
_CURED: frozenset[Version] = frozenset({(3, 50, 7), (3, 44, 6)})
_FIRST_BAD: Version = (3, 7, 0)
_FIRST_GOOD: Version = (3, 51, 3)


def _library_version() -> Version:
    major, minor, patch = sqlite3.sqlite_version_info[:3]
    return major, minor, patch


LIBRARY_VERSION = _library_version()


def wal_is_safe(version: Version = LIBRARY_VERSION) -> bool:
    """Whether this SQLite keeps every committed write in WAL mode."""
    return version in _CURED or not _FIRST_BAD <= version < _FIRST_GOOD


def explain(error: sqlite3.Error, where: str, *, committing: bool = False) -> MainspringError | None:
    """The error of ours that a failure of SQLite is, with what, why and the next step; None for a bug of ours."""
    name = getattr(error, "sqlite_errorname", None) or ""
    text = str(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreUnavailable(
            f"{where} was locked by another program for too long ({text}); "
            "look for a long transaction on the file (`lsof` names its programs) and try again"
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreRefuses(
            f"{where} takes no writes ({text}); make the file and its folder writable for this user, "
            "or point the store at another file"
        )
    if name.startswith("SQLITE_FULL"):
        return StoreRefuses(f"no space is left for {where} ({text}); free space on its disk, nothing was stored")
    if name.startswith("SQLITE_CANTOPEN"):
        return StoreUnavailable(
            f"{where} cannot be opened ({text}); check that its folder exists and that this user may read and write it"
        )
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(
            f"the disk failed while {where} was used ({text}); check the disk", unknown_outcome=committing
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        # No wait mends it: whoever waits for a store that cannot be reached must not wait for this one.
        return StoreRefuses(
            f"{where} is damaged or no SQLite file ({text}); move it away and restore a backup, or choose another file"
        )
    return None
