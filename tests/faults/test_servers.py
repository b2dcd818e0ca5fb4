"""The servers that every other test stands on: they come back with what they stored, and leave nothing behind."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.support.binaries import ROOT, VERSIONS
from tests.support.processes import wait_until
from tests.support.servers import PostgresServer


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    server = PostgresServer(request.param, own=True)
    server.start()
    yield server
    server.stop()


async def test_what_is_committed_survives_restart_and_kill(server: PostgresServer) -> None:
    url = server.create_database()
    await _run(url, "create table ledger (entry int); insert into ledger values (1)")
    server.restart("immediate")
    await _run(url, "insert into ledger values (2)")
    server.kill()
    server.start()
    assert await _entries(url) == [1, 2]


async def test_it_is_the_version_that_was_asked_for(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url())
    assert connection.get_server_version().major == server.version
    await connection.close()


async def test_a_clone_has_what_its_template_has(server: PostgresServer) -> None:
    template = server.template(
        "ledger", lambda url: server.execute("create table ledger (entry int)", url.rpartition("/")[2])
    )
    assert await _entries(server.create_database(template=template)) == []


async def test_a_frozen_server_answers_nobody_until_it_thaws(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url())
    server.freeze()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncpg.connect(server.url()), timeout=0.3)
    server.thaw()
    assert await connection.fetchval("select 1") == 1
    await connection.close()


def test_a_killed_owner_leaves_no_server_and_no_folder() -> None:
    program = "import time; from tests.support.servers import PostgresServer as P; s = P(18, own=True); s.start(); print(s._folder, flush=True); time.sleep(60)"
    owner = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        folder = Path(owner.stdout.readline().strip())
    assert (folder / "data/postmaster.pid").exists()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_until(lambda: not folder.exists(), "the server of a killed owner is gone")


async def _run(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statements)
    await connection.close()


async def _entries(url: str) -> list[int]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("select entry from ledger order by entry")
    await connection.close()
    return [row["entry"] for row in rows]
