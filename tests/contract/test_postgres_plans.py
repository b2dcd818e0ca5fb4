"""What the database makes of our statements: the right index on large tables, and no plan that only fits small ones."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from mainspring.core.model import DAY
from mainspring.ports.store import Store
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.base import statements
from mainspring.stores.postgres.connection import SESSION
from tests.contract.helpers import T0, TASK, given_worker, immediate_job, new_id

RUNS = 60_000
JOBS = 40_000


@pytest.fixture(params=["postgres15", "postgres18"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(request.getfixturevalue(f"contract_{request.param}_url"))
    await store.open()
    yield store
    await store.close()


KEPT = SESSION
MADE_ANEW: dict[str, str] = {}
SETTINGS = pytest.mark.parametrize("settings", [KEPT, MADE_ANEW], ids=["kept", "made anew"])


class TestLargeTables:
    """With plans that are kept, as on direct connections, and with plans made anew, as behind a pooler."""

    @SETTINGS
    async def test_a_claim_reads_the_head_of_its_line(self, store: PostgresStore, settings: dict[str, str]) -> None:
        worker = await given_worker(store)
        await store.submit([immediate_job()], now=T0)
        await many_runs(store)
        arguments = (worker, [TASK], None, 100, True, 1 << 23, "default", T0 + DAY, "")
        plan = await explain(store, "claim", *arguments, settings=settings, carried_out=True)
        assert "Index Scan using runs_claim on runs" in plan
        assert most_rows(plan) <= 200

    @SETTINGS
    async def test_a_finish_goes_by_the_primary_key(self, store: PostgresStore, settings: dict[str, str]) -> None:
        worker = await given_worker(store)
        await store.submit([immediate_job()], now=T0)
        await many_runs(store)
        claimed = await store.claim(worker, tasks=[TASK], queues=None, count=100, now=T0 + DAY)
        arguments = ([run.id for run in claimed], [run.fence for run in claimed], None, None, worker, T0 + DAY)
        plan = await explain(store, "finish_completed", *arguments, settings=settings, carried_out=True)
        assert "Index Scan using runs_pkey on runs" in plan
        assert most_rows(plan) <= 100

    async def test_what_is_due_comes_from_the_index_of_its_shard(self, store: PostgresStore) -> None:
        await store.submit([immediate_job()], now=T0)
        await many_jobs(store)
        plan = await explain(store, "due_jobs", [3, 77], T0 + JOBS, 100, settings=SESSION, carried_out=True)
        assert "_shard_scheduled_at_idx" in plan
        assert most_rows(plan) <= 200

    async def test_a_lookup_by_id_leaves_out_the_days_before_the_id_was_made(self, store: PostgresStore) -> None:
        for day in range(12, 0, -4):
            await store.upkeep(history_days=1000, log_days=1000, now=T0 - day * DAY)
        whole = await explain(store, "runs_by_id", [new_id(T0)], T0 - 1000 * DAY)
        pruned = await explain(store, "runs_by_id", [new_id(T0)], T0 - 2 * DAY)
        assert "history_20261210" in whole
        assert "history_20261210" not in pruned
        assert "history_20261220" in pruned


class TestPlansMadeOnEmptyTables:
    """They are kept while the tables grow: nothing in them may depend on a table being small."""

    @pytest.mark.parametrize("vacuumed", [False, True])
    async def test_a_claim_writes_by_place(self, store: PostgresStore, vacuumed: bool) -> None:
        worker = await given_worker(store)
        if vacuumed:
            await fill(store, "VACUUM mainspring.runs", table="runs")
        arguments = (worker, [TASK], None, 100, True, 1 << 23, "default", T0 + DAY, "")
        plan = await explain(store, "claim", *arguments, settings=SESSION)
        assert "Tid Scan on runs" in plan
        assert "Index Scan using runs_claim on runs" in plan

    async def test_a_finish_goes_by_the_primary_key(self, store: PostgresStore) -> None:
        worker = await given_worker(store)
        plan = await explain(store, "finish_completed", [new_id()], [1], None, None, worker, T0, settings=SESSION)
        assert "Index Scan using runs_pkey on runs" in plan
        assert "Index Cond: (id = ANY (ARRAY[k.id]))" in plan

    @pytest.mark.parametrize("name", ["lock_runs", "end_runs", "leave_workers", "set_progress", "fire_delayed"])
    async def test_no_statement_of_the_hot_path_scans_a_table(self, store: PostgresStore, name: str) -> None:
        plan = await explain(store, name, *ARGUMENTS[name], settings=SESSION)
        assert "Seq Scan on" not in plan


ARGUMENTS: dict[str, tuple[object, ...]] = {
    "lock_runs": ([new_id()],),
    "end_runs": ([new_id()], [10], [None], [None], [None], [0], [0], [None], T0),
    "leave_workers": ([new_id()], [0], [None], [None], [None], [0], [0], [None], [0]),
    "set_progress": ([new_id()], [1], ["{}"], new_id()),
    "fire_delayed": ([new_id()], [1], [new_id()], [T0], [False], T0),
}


async def explain(
    store: PostgresStore,
    name: str,
    *arguments: object,
    settings: dict[str, str] | None = None,
    carried_out: bool = False,
) -> str:
    """The plan, as a direct connection or as one through a pooler would make it."""
    address = store.address if settings else replace(store.address, pooler=True)
    connection = await asyncpg.connect(address.url, server_settings=settings or {})
    how = "EXPLAIN (ANALYZE)" if carried_out else "EXPLAIN"
    try:
        rows = await connection.fetch(f"{how} {statements(address)[name]}", *arguments)
    finally:
        await connection.close()
    return "\n".join(row[0] for row in rows)


def most_rows(plan: str) -> int:
    """The most rows that any step of a plan that was carried out gave or threw away."""
    given = re.findall(r"actual time=\S+ rows=([\d.]+)", plan)
    thrown_away = re.findall(r"Rows Removed by \w+(?: \w+)?: (\d+)", plan)
    return max(int(float(count)) for count in (*given, *thrown_away))


async def many_runs(store: PostgresStore) -> None:
    await fill(
        store,
        "INSERT INTO mainspring.runs (id, job_id, ready_at, scheduled_at, created_at, lane, kind, state, priority, payload) "
        "SELECT id, id, $1::bigint + n, $1, $1, (SELECT min(id) FROM mainspring.lanes), 0, 0, 50, '{}' "
        "FROM (SELECT n, md5(n::text)::uuid AS id FROM generate_series(1, $2::int) AS n) AS made",
        T0,
        RUNS,
        table="runs",
    )


async def many_jobs(store: PostgresStore) -> None:
    await fill(
        store,
        "INSERT INTO mainspring.jobs (id, shard, next_at, scheduled_at, fired_through, created_at, updated_at, lane, version, "
        "runs_made, kind, state, priority, payload) "
        "SELECT id, get_byte(uuid_send(id), 15), $1::bigint + n, $1 + n, $1, $1, $1, (SELECT min(id) FROM mainspring.lanes), 1, 0, "
        "1, 0, 50, '{}' FROM (SELECT n, md5(n::text)::uuid AS id FROM generate_series(1, $2::int) AS n) AS made",
        T0,
        JOBS,
        table="jobs",
    )


async def fill(store: Store, sql: str, *arguments: object, table: str) -> None:
    assert isinstance(store, PostgresStore)
    connection = await asyncpg.connect(store.address.url)
    try:
        await connection.execute(sql, *arguments)
        await connection.execute(f"ANALYZE mainspring.{table}")
    finally:
        await connection.close()
