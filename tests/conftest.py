"""What every test can ask for: a fresh database of its own on each kind of store, and servers that are ours to hurt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.servers import PostgresServer

# A shared machine is slow at times; that is no finding.
settings.register_profile("mainspring", deadline=None, print_blob=True)
settings.load_profile("mainspring")

# Real processes and clocks in them: one after another, in one worker, while the others go on.
ONE_AT_A_TIME = ("tests/faults/", "tests/e2e/")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    for item in items:
        place = item.path.relative_to(config.rootpath).as_posix()
        if place.startswith(ONE_AT_A_TIME):
            item.add_marker(pytest.mark.xdist_group("processes"))


@pytest.fixture(scope="session")
def postgres15_server() -> Iterator[PostgresServer]:
    yield from _server(15)


@pytest.fixture(scope="session")
def postgres18_server() -> Iterator[PostgresServer]:
    yield from _server(18)


@pytest.fixture
def postgres15_url(postgres15_server: PostgresServer) -> Iterator[str]:
    """An empty database of this test's own on PostgreSQL 15."""
    yield from _database(postgres15_server)


@pytest.fixture
def postgres18_url(postgres18_server: PostgresServer) -> Iterator[str]:
    """An empty database of this test's own on PostgreSQL 18."""
    yield from _database(postgres18_server)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A store in a file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'mainspring.db'}"


def _server(version: int) -> Iterator[PostgresServer]:
    """One a test process; it syncs nothing to disk, since nobody looks at it after a crash."""
    server = PostgresServer(version, fsync=False)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _database(server: PostgresServer) -> Iterator[str]:
    url = server.create_database()
    try:
        yield url
    finally:
        server.drop_database(url)
