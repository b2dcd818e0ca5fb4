"""A server that the tests of one file may stop, kill and freeze."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.servers import PostgresServer


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer(15, own=True)
    server.start()
    try:
        yield server
    finally:
        server.stop()
