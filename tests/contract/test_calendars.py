"""Calendars by name: written under a version, shared by jobs, kept while one uses them; and earlier definitions."""

from __future__ import annotations

import asyncio
import json

import pytest

from mainspring.core.errors import Conflict, NotFound, StaleVersion
from mainspring.core.model import HOUR, MINUTE, JobState
from mainspring.ports.store import Hint, JobEdit, Store, Topic
from tests.contract.helpers import T0, cancel, given_job, given_recurring_job, immediate_job, recurring_job, row_of

CHRISTMAS = json.dumps({"dates": ["2026-12-25"]})
WEEKENDS = json.dumps({"days_off": ["sat", "sun"]})


async def test_a_calendar_is_created_read_and_replaced(store: Store, other: Store) -> None:
    made = await store.put_calendar("be-holidays", CHRISTMAS, now=T0)
    assert (made.name, made.version, made.updated_at, made.document) == ("be-holidays", 1, T0, CHRISTMAS)
    replaced = await other.put_calendar("be-holidays", WEEKENDS, now=T0 + 1)
    assert (replaced.version, replaced.updated_at) == (2, T0 + 1)
    assert await store.calendars() == [replaced]
    assert await store.calendar_marks() == {("default", "be-holidays"): (2, T0 + 1)}


async def test_the_same_document_again_changes_nothing(store: Store) -> None:
    made = await store.put_calendar("a", CHRISTMAS, now=T0)
    assert await store.put_calendar("a", CHRISTMAS, now=T0 + HOUR) == made


async def test_calendars_are_listed_by_name_and_namespace(store: Store) -> None:
    for name in ("b", "a", "c"):
        await store.put_calendar(name, CHRISTMAS, now=T0)
    await store.put_calendar("a", WEEKENDS, namespace="elsewhere", now=T0)
    assert [row.name for row in await store.calendars()] == ["a", "b", "c"]
    assert [row.name for row in await store.calendars(["c", "x", "a"])] == ["a", "c"]
    assert [row.document for row in await store.calendars(namespace="elsewhere")] == [WEEKENDS]


async def test_a_write_that_expects_another_version_is_refused(store: Store) -> None:
    with pytest.raises(StaleVersion, match="does not exist"):
        await store.put_calendar("a", CHRISTMAS, expected=1, now=T0)
    await store.put_calendar("a", CHRISTMAS, expected=0, now=T0)
    with pytest.raises(StaleVersion, match="has version 1"):
        await store.put_calendar("a", WEEKENDS, expected=2, now=T0)
    with pytest.raises(StaleVersion):
        await store.delete_calendar("a", expected=7)
    assert [row.document for row in await store.calendars()] == [CHRISTMAS]


async def test_an_unused_calendar_is_deleted(store: Store) -> None:
    await store.put_calendar("a", CHRISTMAS, now=T0)
    await store.delete_calendar("a", expected=1)
    assert await store.calendars() == []
    with pytest.raises(NotFound):
        await store.delete_calendar("a")


async def test_a_calendar_in_use_stays(store: Store) -> None:
    await store.put_calendar("a", CHRISTMAS, now=T0)
    job = await given_recurring_job(store, recurring_job(calendar={"name": "a"}))
    with pytest.raises(Conflict, match=str(job.id)):
        await store.delete_calendar("a")
    await cancel(store, job.id)
    await store.delete_calendar("a")
    assert await store.calendars() == []


async def test_the_users_of_a_calendar_are_found_page_by_page(store: Store) -> None:
    await given_recurring_job(store, recurring_job())
    await given_job(store, immediate_job(metadata={"calendar": {"name": "a"}}))
    await given_recurring_job(store, recurring_job(calendar={"name": "b"}))
    await given_recurring_job(store, recurring_job(metadata={"calendar": {"name": "a"}}))
    users = [
        (await given_recurring_job(store, recurring_job(calendar={"name": "a", "roll": "next"}))).id for _ in "123"
    ]
    first = await store.jobs_using_calendar("a", limit=2)
    assert [job.id for job in first] == users[:2]
    assert [job.id for job in await store.jobs_using_calendar("a", after=first[-1].id)] == users[2:]
    assert await store.jobs_using_calendar("a", namespace="elsewhere") == []


async def test_a_change_of_a_calendar_is_hinted(store: Store) -> None:
    heard = asyncio.Event()
    stop = store.subscribe(lambda hint: heard.set() if hint == Hint(Topic.JOBS) else None)
    await store.put_calendar("a", CHRISTMAS, now=T0)
    async with asyncio.timeout(5):
        await heard.wait()
    stop()


async def test_definitions_are_kept_by_time(store: Store) -> None:
    job = await given_recurring_job(store, recurring_job(name="first"))
    edit = JobEdit(
        job.id, 1, document='{"every":60,"name":"second"}', next_at=T0 + 2 * MINUTE, payload=b'{"a":1}',
        priority=70, definition_changed=True,
    )  # fmt: skip
    await store.change(edit, now=T0 + MINUTE - 1)
    pause = JobEdit(job.id, 2, state=JobState.PAUSED, next_at=T0 + 2 * MINUTE)
    await store.change(pause, now=T0 + MINUTE)
    versions = await store.job_versions(job.id)
    assert [(each.version, each.since, each.priority, each.payload) for each in versions] == [
        (1, T0, 50, b"{}"),
        (2, T0 + MINUTE - 1, 70, b'{"a":1}'),
    ]
    assert [json.loads(each.document or "{}")["name"] for each in versions] == ["first", "second"]
    assert versions[0].lane == (await row_of(store, job.id)).lane


async def test_only_recurring_jobs_have_earlier_definitions(store: Store) -> None:
    assert await store.job_versions(await given_job(store, immediate_job())) == []
    job = await given_recurring_job(store)
    await cancel(store, job.id, delete=True)
    assert await store.job_versions(job.id) == []
