"""Which SQLite libraries may use WAL, and how a failure of SQLite is told."""

from __future__ import annotations

import pytest

from mainspring.core.errors import StoreRefuses, StoreUnavailable
from mainspring.stores.sqlite.driver import explain, sqlite3, wal_is_safe


@pytest.mark.parametrize("version", [(3, 7, 0), (3, 40, 1), (3, 44, 5), (3, 46, 1), (3, 50, 4), (3, 50, 6), (3, 51, 2)])
def test_these_can_lose_commits(version: tuple[int, int, int]) -> None:
    assert not wal_is_safe(version)


@pytest.mark.parametrize("version", [(3, 6, 23), (3, 44, 6), (3, 50, 7), (3, 51, 3), (3, 53, 4), (4, 0, 0)])
def test_these_cannot(version: tuple[int, int, int]) -> None:
    assert wal_is_safe(version)


def failure(name: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("the words of SQLite")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("name", "kind", "next_step"),
    [
        ("SQLITE_BUSY", StoreUnavailable, "look for a long transaction"),
        ("SQLITE_BUSY_SNAPSHOT", StoreUnavailable, "look for a long transaction"),
        ("SQLITE_LOCKED", StoreUnavailable, "look for a long transaction"),
        ("SQLITE_READONLY", StoreRefuses, "make the file and its folder writable"),
        ("SQLITE_READONLY_DIRECTORY", StoreRefuses, "make the file and its folder writable"),
        ("SQLITE_FULL", StoreRefuses, "free space on its disk"),
        ("SQLITE_CANTOPEN", StoreUnavailable, "check that its folder exists"),
        ("SQLITE_IOERR_FSYNC", StoreUnavailable, "check the disk"),
        ("SQLITE_CORRUPT", StoreRefuses, "restore a backup"),
        ("SQLITE_NOTADB", StoreRefuses, "restore a backup"),
    ],
)
def test_a_failure_says_what_why_and_the_next_step(name: str, kind: type[Exception], next_step: str) -> None:
    told = explain(failure(name), "the store a.db")
    assert type(told) is kind
    text = str(told)
    assert "the store a.db" in text
    assert "the words of SQLite" in text
    assert next_step in text


def test_only_a_disk_that_failed_in_the_commit_leaves_the_outcome_unknown() -> None:
    during = explain(failure("SQLITE_IOERR"), "a.db", committing=True)
    before = explain(failure("SQLITE_IOERR"), "a.db")
    assert isinstance(during, StoreUnavailable)
    assert during.unknown_outcome
    assert isinstance(before, StoreUnavailable)
    assert not before.unknown_outcome


def test_a_bug_of_ours_stays_what_it_is() -> None:
    assert explain(failure("SQLITE_ERROR"), "a.db") is None
