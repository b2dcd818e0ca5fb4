"""The statements that run often walk an index: EXPLAIN QUERY PLAN says so, on the schema as it is migrated."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.driver import sqlite3
from mainspring.stores.sqlite.listing import statement
from mainspring.stores.sqlite.session import SQL
from mainspring.stores.sqlite.store import SqliteStore

NAMED = re.compile(r":([a-z_]+)")
NUMBERED = re.compile(r"\?(\d+)")


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[sqlite3.Connection]:
    path = tmp_path / "plans.db"
    await SqliteStore(path).migrations.up()
    connection = File(path).open_writer()
    yield connection
    connection.close()


def plan_of(file: sqlite3.Connection, sql: str) -> list[str]:
    names = set(NAMED.findall(sql))
    values: dict[str, None] | list[None] = dict.fromkeys(names)
    if not names:
        values = [None] * max((int(number) for number in NUMBERED.findall(sql)), default=0)
    return [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def scanned(plan: list[str]) -> list[str]:
    """Tables that are read from end to end: a scan that names no index and is none of a list or a subquery."""
    tables = ("runs", "history", "jobs", "run", "job", "live_runs", "past_runs", "logs", "dead_letters", "old")
    return [line for line in plan if re.fullmatch(rf"SCAN ({'|'.join(tables)})", line)]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("claim", "runs_claim (lane=?"),
        ("heads_of_lane", "runs_claim (lane=?"),
        ("lanes_with_work", "runs_claim (lane=?"),
        ("bury_completed", "sqlite_autoindex_runs_1 (id=?"),
        ("drop_runs_by_id", "sqlite_autoindex_runs_1 (id=?"),
        ("endings_state", "sqlite_autoindex_runs_1 (id=?"),
        ("live_of_job", "runs_of_job (job_id=?"),
        ("jobs_of_ended", "runs_of_job (job_id=?"),
        ("stored_ids", "history_id (id=?"),
        ("due_jobs", "jobs_due (scheduled_at<?"),
        ("due_of_shards", "jobs_due (scheduled_at<?"),
        ("fire_one_time", "sqlite_autoindex_jobs_1 (id=?"),
        ("drop_jobs_by_id", "sqlite_autoindex_jobs_1 (id=?"),
        ("promote", "runs_aside (state=? AND ready_at<?"),
        ("expired", "runs_expiring (expires_at>? AND expires_at<?"),
        ("wake_for_retry", "runs_aside (state=?"),
        ("next_fire", "jobs_due"),
        ("held_by_worker", "runs_running (worker=?"),
        ("holders_gone", "runs_running (worker>?"),
        ("cancels_of_worker", "runs_cancelling (worker=?"),
        ("head_of_priority", "runs_claim (lane=? AND priority<?"),
        ("live_by_id", "sqlite_autoindex_runs_1 (id=?"),
        ("past_by_id", "history_id (id=?"),
        ("past_standing", "history_of_job (job_id=?"),
        ("newest_past_of_job", "history_of_job (job_id=?"),
        ("logs", "logs_of_run (run_id=? AND number>?"),
        ("drop_history", "INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_a_frequent_statement_seeks_in_its_index(file: sqlite3.Connection, name: str, index: str) -> None:
    plan = plan_of(file, SQL[name])
    assert any(index in line for line in plan), plan
    assert scanned(plan) == [], plan


@pytest.mark.parametrize("name", ["claim", "heads_of_lane", "due_jobs", "promote", "expired", "head_of_priority"])
def test_what_comes_in_order_is_not_sorted(file: sqlite3.Connection, name: str) -> None:
    plan = plan_of(file, SQL[name])
    sorting = [line for line in plan if "TEMP B-TREE" in line and "LAST TERM" not in line and "RIGHT PART" not in line]
    assert sorting == [], plan


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("list_live", "runs USING INDEX sqlite_autoindex_runs_1 (id<?"),
        ("list_past", "history USING INDEX history_id (id<?"),
        ("list_live_of_job", "runs_of_job (job_id=?"),
        ("list_past_of_job", "history_of_job (job_id=?"),
        ("list_past_of_state", "history_not_completed (state=?"),
        ("list_running", "runs_running"),
        ("list_aside", "runs_aside"),
        ("list_unknown", "runs_claim (lane=?"),
        ("unknown_job_ids", "runs_claim (lane=?"),
        ("job_ids", "jobs USING INDEX sqlite_autoindex_jobs_1 (id<?"),
        ("live_job_ids", "runs USING INDEX sqlite_autoindex_runs_1 (id<?"),
        ("live_fired_ids", "runs USING INDEX runs_of_job (job_id<?"),
        ("past_completed_ids", "history USING INDEX history_id (id>? AND id<?"),
        ("past_slow_ids", "history USING INDEX history_slow (id<?"),
        ("past_fired_ids", "history USING INDEX history_of_job (job_id<?"),
        ("past_other_ids", "history_not_completed (state=?"),
    ],
)
def test_a_list_walks_its_index_from_the_newest_on(file: sqlite3.Connection, name: str, index: str) -> None:
    """Not one of them reads a table from end to end; those that begin at the newest need no sort and stop early."""
    plan = plan_of(file, statement(name))
    assert any(index in line for line in plan), plan
    assert scanned(plan) == [], plan
    if "id<?" in index:
        assert not any("TEMP B-TREE FOR ORDER BY" in line for line in plan), plan
