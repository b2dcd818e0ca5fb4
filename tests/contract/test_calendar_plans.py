"""The way from a calendar to the jobs that use it goes by an index that holds nothing else."""

from __future__ import annotations

from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.connection import SESSION
from tests.contract.helpers import given_recurring_job, recurring_job
from tests.contract.test_postgres_plans import explain, many_jobs, most_rows, store

__all__ = ["store"]


async def test_the_users_of_a_calendar_come_from_its_index(store: PostgresStore) -> None:
    for _ in range(3):
        await given_recurring_job(store, recurring_job(calendar={"name": "a"}))
    await given_recurring_job(store, recurring_job(calendar={"name": "b"}))
    await many_jobs(store)
    for settings in (SESSION, {}):
        arguments = ("a", "default", None, 1000)
        plan = await explain(store, "jobs_using_calendar", *arguments, settings=settings, carried_out=True)
        assert "_expr_id_idx" in plan, plan
        assert most_rows(plan) <= 10
    assert len(await store.jobs_using_calendar("a")) == 3
