"""The schema and the numbered steps to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.stores.postgres.base import HERE, Base, for_schema
from mainspring.stores.postgres.connection import Address, connect, translate
from mainspring.stores.postgres.pool import BEGIN, close_quietly
from mainspring.stores.shared import Step, check_program, check_schema, load_steps, pending, script

if TYPE_CHECKING:
    import asyncpg

STEPS = load_steps(HERE / "migrations")
STEP_SECONDS_MAX = 600


class PostgresMigrations:
    """Each step is a transaction under an advisory lock: a second node waits, and then finds nothing left to do."""

    def __init__(self, address: Address, sql: dict[str, str]) -> None:
        self._address = address
        self._sql = sql

    async def status(self) -> list[tuple[str, bool]]:
        """Each step's name and whether it is applied."""
        connection = await connect(self._address)
        try:
            applied, _ = await self._applied(connection)
        finally:
            await close_quietly(connection)
        missing = {step.name for step in pending(STEPS, applied)}
        return [(step.name, step.name not in missing) for step in STEPS]

    async def up(self) -> list[str]:
        """Applies what is missing; the names of what was applied."""
        connection = await connect(self._address)
        try:
            return [step.name for step in STEPS if await self._apply(connection, step)]
        finally:
            await close_quietly(connection)

    def sql(self) -> str:
        """All steps as a script for a person to read or run."""
        create = self._sql["create_schema"].replace("{schema}", f'"{self._address.schema}"')
        text = script(STEPS, [BEGIN, create], self._recorded)
        return for_schema(text, self._address.schema)

    def _recorded(self, step: Step) -> list[str]:
        named = {"number": step.number, "name": step.name, "checksum": step.checksum, "least": step.min_program}
        return [self._sql["record_step_by_hand"].format(**named), "COMMIT"]

    async def check(self, connection: asyncpg.Connection) -> None:
        """SchemaError, with the next step, unless this program can work on what is there."""
        applied, min_program = await self._applied(connection)
        check_schema(STEPS, applied, min_program, self._address.shown)

    async def _applied(self, connection: asyncpg.Connection) -> tuple[dict[str, str], int]:
        try:
            if not await connection.fetchval(self._sql["has_migrations"]):
                return {}, 0
            rows = await connection.fetch(self._sql["applied"])
        except Exception as error:
            raise translate(error, self._address) from error
        return {row["name"]: row["checksum"] for row in rows}, max((row["min_program"] for row in rows), default=0)

    async def _apply(self, connection: asyncpg.Connection, step: Step) -> bool:
        try:
            await connection.execute(BEGIN)
            await connection.execute(self._sql["wait_for_migrations"])
            await connection.fetchval(self._sql["lock_migrations"], self._address.schema, timeout=STEP_SECONDS_MAX)
            await connection.execute(self._sql["bound_locks"])
            schema = f'"{self._address.schema}"'
            await connection.execute(self._sql["create_schema"].replace("{schema}", schema))
            applied, min_program = await self._applied(connection)
            check_program(STEPS, min_program, self._address.shown)
            wanted = step in pending(STEPS, applied)
            if wanted:
                await connection.execute(for_schema(step.sql, self._address.schema), timeout=STEP_SECONDS_MAX)
                await connection.execute(
                    self._sql["record_step"], step.number, step.name, step.checksum, step.min_program
                )
            await connection.execute("COMMIT")
        except Exception as error:
            raise translate(error, self._address) from error
        return wanted


class Migrating(Base):
    """The store's way to its schema."""

    @property
    def migrations(self) -> PostgresMigrations:
        return PostgresMigrations(self._address, self._sql)
