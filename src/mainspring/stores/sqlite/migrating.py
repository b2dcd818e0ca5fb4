"""The steps of the schema, applied to one file."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mainspring.core.errors import SchemaError, StoreRefuses
from mainspring.stores.shared import Step, check_program, check_schema, load_steps, pending, script
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.driver import explain, sqlite3
from mainspring.stores.sqlite.session import SQL

STEPS: tuple[Step, ...] = tuple(load_steps(Path(__file__).with_name("migrations")))


class SqliteMigrations:
    """Numbered steps with checksums; a lock of the operating system keeps two programs from migrating at once."""

    def __init__(self, file: File, steps: tuple[Step, ...] = STEPS) -> None:
        self._file = file
        self._steps = steps

    async def status(self) -> list[tuple[str, bool]]:
        return await asyncio.to_thread(self._status)

    async def up(self) -> list[str]:
        return await asyncio.to_thread(self._up)

    def sql(self) -> str:
        opening = [SQL[name] for name in ("begin_writing", "create_bookkeeping", "create_meta")]
        return script(self._steps, opening, _recorded)

    def check(self) -> None:
        """Raises SchemaError unless this program can work on the file."""
        if not self._file.exists():
            raise SchemaError(
                f"{self._file.where} does not exist yet or is empty; run `mainspring migrate up` (or `mainspring up`, "
                "which does it by itself) to create it"
            )
        applied, min_program = self._applied()
        check_schema(self._steps, applied, min_program, self._file.where)

    def _status(self) -> list[tuple[str, bool]]:
        applied = self._applied()[0] if self._file.exists() else {}
        missing = {step.name for step in pending(self._steps, applied)}
        return [(step.name, step.name not in missing) for step in self._steps]

    def _applied(self) -> tuple[dict[str, str], int]:
        try:
            connection = self._file.open_reader()
        except sqlite3.Error as error:
            raise explain(error, self._file.where) or error from error
        try:
            return _read_applied(connection)
        except sqlite3.Error as error:
            raise explain(error, self._file.where) or error from error
        finally:
            connection.close()

    def _up(self) -> list[str]:
        with self._alone():
            connection = self._file.create()
            try:
                return self._apply(connection)
            except sqlite3.Error as error:
                raise explain(error, self._file.where) or error from error
            finally:
                connection.close()

    def _apply(self, connection: sqlite3.Connection) -> list[str]:
        connection.execute(SQL["begin_writing"])
        try:
            connection.execute(SQL["create_bookkeeping"])
            connection.execute(SQL["create_meta"])
            applied, min_program = _read_applied(connection)
            check_program(self._steps, min_program, self._file.where)
            missing = pending(self._steps, applied)
            for step in missing:
                for statement in _statements(step.sql):
                    connection.execute(statement)
                connection.execute(SQL["record_step"], (step.name, step.checksum, time.time_ns() // 1000))
                connection.execute(SQL["raise_min_program"], (str(step.min_program),))
            connection.execute(SQL["commit"])
        except BaseException:
            if connection.in_transaction:
                connection.execute(SQL["rollback"])
            raise
        return [step.name for step in missing]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Choosing the journal of a new file is no transaction, hence a lock beside the file."""
        path = self._file.locks / "migrating"
        try:
            path.parent.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreRefuses(
                f"{self._file.where} cannot be migrated: {path} cannot be made ({error.strerror}); "
                f"make {self._file.path.absolute().parent} exist and writable for this user, or choose another path"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _read_applied(connection: sqlite3.Connection) -> tuple[dict[str, str], int]:
    tables = {name for (name,) in connection.execute(SQL["is_ours"])}
    applied = dict(connection.execute(SQL["applied_steps"]).fetchall()) if "migrations" in tables else {}
    found = connection.execute(SQL["min_program"]).fetchone() if "meta" in tables else None
    return applied, 0 if found is None else int(found[0])


def _recorded(step: Step) -> list[str]:
    record = SQL["record_step_by_hand"].format(name=step.name, checksum=step.checksum)
    return [record, SQL["raise_min_program"].replace("?1", f"'{step.min_program}'"), SQL["commit"]]


def _statements(text: str) -> Iterator[str]:
    """The statements of a step, one by one: executescript would end the transaction."""
    statement = ""
    for line in text.splitlines(keepends=True):
        if not statement and (not line.strip() or line.startswith("--")):
            continue
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
