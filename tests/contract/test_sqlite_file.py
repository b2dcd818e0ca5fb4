"""What can be wrong with one file, and what is said about it: what, why, and the next step."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mainspring.core.errors import Conflict, SchemaError, StoreRefuses, StoreUnavailable
from mainspring.core.model import DAY, RunFilter, Verdict
from mainspring.stores.sqlite import connection as connections
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.migrating import STEPS
from mainspring.stores.sqlite.session import Session
from mainspring.stores.sqlite.store import SqliteStore
from tests.contract.helpers import (
    T0,
    claim,
    completed,
    failed,
    given_job,
    given_running_run,
    given_worker,
    immediate_job,
    run_of,
)

Library = Callable[[bool], None]


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "mainspring.db"
    await SqliteStore(path).migrations.up()
    return path


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()


def change(path: Path, statement: str) -> None:
    connection = File(path).open_writer()
    connection.execute(statement)
    connection.close()


class TestSchema:
    async def test_a_file_that_is_not_there_names_the_command_that_makes_it(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match=r"does not exist yet or is empty; run `mainspring migrate up`"):
            await SqliteStore(tmp_path / "none.db").open()
        assert not (tmp_path / "none.db").exists()

    async def test_an_empty_file_too(self, tmp_path: Path) -> None:
        (tmp_path / "empty.db").touch()
        with pytest.raises(SchemaError, match="run `mainspring migrate up`"):
            await SqliteStore(tmp_path / "empty.db").open()
        assert await SqliteStore(tmp_path / "empty.db").migrations.up() == [step.name for step in STEPS]

    async def test_a_file_of_somebody_else_is_left_alone(self, tmp_path: Path) -> None:
        connection = File(tmp_path / "theirs.db").create()
        connection.execute("CREATE TABLE theirs (id INTEGER)")
        connection.close()
        with pytest.raises(SchemaError, match="holds no Mainspring schema yet"):
            await SqliteStore(tmp_path / "theirs.db").open()

    async def test_a_schema_of_a_newer_program_is_refused_with_the_cure(self, path: Path) -> None:
        change(path, "UPDATE meta SET value = '999' WHERE name = 'min_program'")
        with pytest.raises(SchemaError, match=r"needs a newer Mainspring: one that brings migration 0999.*upgrade"):
            await SqliteStore(path).open()
        with pytest.raises(SchemaError, match="needs a newer Mainspring"):
            await SqliteStore(path).migrations.up()

    async def test_a_step_of_a_newer_program_that_still_knows_us_is_no_hindrance(self, path: Path) -> None:
        change(path, "INSERT INTO migrations (name, checksum, applied_at) VALUES ('0999_later', 'x', 0)")
        store = SqliteStore(path)
        await store.open()
        await store.close()

    async def test_a_changed_step_is_found(self, path: Path) -> None:
        change(path, "UPDATE migrations SET checksum = 'tampered'")
        with pytest.raises(SchemaError, match="0001_initial was applied with checksum tampered"):
            await SqliteStore(path).open()
        with pytest.raises(SchemaError):
            await SqliteStore(path).migrations.status()

    async def test_a_second_time_applies_nothing(self, path: Path) -> None:
        assert await SqliteStore(path).migrations.up() == []


class TestWriting:
    async def test_a_full_disk_is_said_and_nothing_is_stored(self, store: SqliteStore) -> None:
        kept = await given_job(store, immediate_job())

        def no_more_pages(session: Session) -> None:
            session.connection.execute("PRAGMA max_page_count = 1")

        await store.write(no_more_pages)
        with pytest.raises(StoreRefuses, match=r"no space is left for .* free space on its disk, nothing was stored"):
            await given_job(store, immediate_job(payload=b"x" * 200_000))
        assert [run.id for run in await store.list_runs(RunFilter())] == [kept]

    async def test_one_of_several_that_waited_together_fails_alone(self, store: SqliteStore) -> None:
        same = immediate_job()
        jobs = [same, immediate_job(), same, immediate_job()]
        answers = await asyncio.gather(*(given_job(store, job) for job in jobs), return_exceptions=True)
        assert [answers[index] for index in (0, 1, 3)] == [jobs[index].id for index in (0, 1, 3)]
        assert isinstance(answers[2], Conflict)
        assert len(await store.list_runs(RunFilter())) == 3

    async def test_what_nobody_waits_for_any_more_is_stored_all_the_same(self, store: SqliteStore) -> None:
        job = immediate_job()
        sending = asyncio.ensure_future(given_job(store, job))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        await given_job(store, immediate_job())
        assert (await run_of(store, job.id)).id == job.id

    async def test_a_closed_store_says_so_and_opens_again(self, store: SqliteStore) -> None:
        await store.close()
        with pytest.raises(StoreUnavailable, match="is not open; call open"):
            await given_job(store, immediate_job())
        await store.open()
        await given_job(store, immediate_job())

    async def test_results_of_one_batch_come_back_as_they_were(self, store: SqliteStore) -> None:
        """Those that fit one statement and those that do not: none, empty, long, not JSON, not even text."""
        results = [b'{"a":"\xc3\xa9:1"}', None, b"", b'"' + b"x" * 100_000 + b'"', b"1:2:3", b'"\\u0000"']
        for extra in ([], [b"\xff\x00"]):
            worker = await given_worker(store)
            wanted = [*results, *extra]
            for _ in wanted:
                await given_job(store, immediate_job())
            claimed = await claim(store, worker)
            endings = [replace(completed(run), result=result) for run, result in zip(claimed, wanted, strict=True)]
            assert await store.finish(worker, endings) == [Verdict.ACCEPTED] * len(wanted)
            assert [(await run_of(store, run.id)).result for run in claimed] == wanted


class TestUpkeep:
    async def test_only_what_waits_for_a_person_outlives_its_time(self, store: SqliteStore) -> None:
        """Old are: a dead letter, one that was discarded, a completed run; young is a second completed one."""
        ended = []
        for ending in (failed, failed, completed):
            worker, claimed = await given_running_run(store)
            assert await store.finish(worker, [ending(claimed)], now=T0) == [Verdict.ACCEPTED]
            ended.append(claimed.id)
        worker, claimed = await given_running_run(store)
        await store.finish(worker, [completed(claimed)], now=T0 + 2 * DAY)
        await store.discard_dead_letters([ended[1]])
        assert (await store.upkeep(history_days=1, now=T0 + 2 * DAY))["history"] == 2
        left = [run is not None for run in await store.runs([*ended, claimed.id])]
        assert left == [True, False, False, True]


class TestAccess:
    @pytest.fixture
    def shared(self) -> Iterator[Path]:
        """A folder that every user may enter, unlike those that pytest makes."""
        folder = Path(tempfile.mkdtemp(prefix="mainspring-"))
        folder.chmod(0o755)
        yield folder
        shutil.rmtree(folder)

    async def test_a_file_that_may_only_be_read_is_said_to_be_so(self, shared: Path) -> None:
        path = shared / "readable.db"
        await SqliteStore(path, journal="delete").migrations.up()
        path.chmod(0o444)
        said = refusal(path)
        assert said.startswith("StoreRefuses: "), said
        assert "takes no writes" in said
        assert "make the file and its folder writable for this user" in said

    async def test_a_file_that_may_not_be_read_too(self, shared: Path) -> None:
        path = shared / "secret.db"
        await SqliteStore(path).migrations.up()
        path.chmod(0o000)
        said = refusal(path)
        assert said.startswith("StoreUnavailable: "), said
        assert "check that its folder exists and that this user may read and write it" in said

    async def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(StoreRefuses, match=r"cannot be migrated: .*make .*/nowhere exist and writable"):
            await SqliteStore(tmp_path / "nowhere" / "a.db").migrations.up()

    async def test_no_database_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "text.db").write_text("This is a letter, not a database. " * 100)
        with pytest.raises(StoreRefuses, match="is damaged or no SQLite file"):
            await SqliteStore(tmp_path / "text.db").open()

    async def test_a_damaged_database(self, path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 400)
        with pytest.raises(StoreRefuses, match=r"is damaged or no SQLite file .*restore a backup"):
            await SqliteStore(path).open()


def refusal(path: Path) -> str:
    command = [sys.executable, "-m", "tests.contract.sqlite_program", "refused", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


class TestJournal:
    """The gate: libraries that can lose commits in WAL mode never use it."""

    @pytest.fixture
    def library(self, monkeypatch: pytest.MonkeyPatch) -> Library:
        """Says of the library that is there whether it is safe, from now on."""

        def is_safe(safe: bool) -> None:
            monkeypatch.setattr(connections, "wal_is_safe", lambda: safe)

        is_safe(True)
        return is_safe

    async def test_a_new_file_is_made_without_wal_where_asked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MAINSPRING_SQLITE_JOURNAL", "delete")
        assert not await opened_with_wal(tmp_path / "plain.db")

    async def test_a_new_file_is_made_without_wal_by_an_unsafe_library(self, tmp_path: Path, library: Library) -> None:
        library(False)
        assert not await opened_with_wal(tmp_path / "plain.db")

    async def test_an_unsafe_library_alone_on_a_file_leaves_wal(self, tmp_path: Path, library: Library) -> None:
        assert await opened_with_wal(tmp_path / "wal.db")
        library(False)
        assert not await opened_with_wal(tmp_path / "wal.db")

    async def test_it_never_changes_the_file_under_others(self, tmp_path: Path, library: Library) -> None:
        path = tmp_path / "wal.db"
        assert await opened_with_wal(path)
        store = SqliteStore(path)
        await store.open()
        await given_job(store, immediate_job())
        library(False)
        with pytest.raises(
            StoreRefuses, match=r"in WAL mode and in use.*stop the other programs.*pip install pysqlite3"
        ):
            await SqliteStore(path).open()
        await given_job(store, immediate_job())
        assert store.wal
        await store.close()


async def opened_with_wal(path: Path) -> bool:
    store = SqliteStore(path)
    await store.migrations.up()
    await store.open()
    await given_job(store, immediate_job())
    await store.close()
    return store.wal
