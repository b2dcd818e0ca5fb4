"""What the driver's own errors mean to us."""

from __future__ import annotations

import asyncpg
import pytest

from mainspring.core.errors import StoreUnavailable
from mainspring.stores.postgres.connection import is_broken, read_address, translate

ADDRESS = read_address("postgresql://user:secret@host/database")


@pytest.mark.parametrize(
    "error",
    [
        # As a server that restarts leaves an idle connection: its farewell has been read, the end of the stream not yet.
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_a_connection_that_failed_is_dropped_and_the_store_unreachable(error: Exception) -> None:
    assert is_broken(error)
    meant = translate(error, ADDRESS, committing=True)
    assert isinstance(meant, StoreUnavailable)
    assert meant.unknown_outcome
    assert "secret" not in str(meant)


@pytest.mark.parametrize("error", [asyncpg.InterfaceError("wrong use of it"), asyncpg.UndefinedTableError("no table")])
def test_a_bug_of_ours_stays_what_it_is(error: Exception) -> None:
    assert not is_broken(error)
    assert translate(error, ADDRESS) is error
