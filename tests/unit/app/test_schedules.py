"""Schedules that stand in code, stored by any number of processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import pytest

from mainspring import InvalidInput, Mainspring
from mainspring.app.removed import disable_removed, planned
from mainspring.app.schedules import store_schedules
from mainspring.client.direct import Direct


@pytest.fixture
async def direct() -> AsyncIterator[Direct]:
    app = Mainspring(store=f"memory://{uuid4()}")
    yield (await app.connections.here()).direct
    await app.close()


def nightly(hour: int = 1) -> Mainspring:
    app = Mainspring()

    @app.cron(f"30 {hour} * * *", timezone="Europe/Berlin", misfire="once", queue="night")
    def clean() -> None: ...

    return app


async def jobs(direct: Direct) -> list[dict[str, object]]:
    items = (await direct.list_jobs())["items"]
    assert isinstance(items, list)
    return items


async def test_a_declared_schedule_becomes_a_job_once(direct: Direct) -> None:
    assert await store_schedules(direct, nightly().schedules) == ["schedule:clean"]
    assert await store_schedules(direct, nightly().schedules) == []

    (job,) = await jobs(direct)
    assert (job["task"], job["cron"], job["timezone"], job["queue"], job["status"]) == (
        "clean",
        "30 1 * * *",
        "Europe/Berlin",
        "night",
        "active",
    )


async def test_many_processes_make_one_job(direct: Direct) -> None:
    await asyncio.gather(*(store_schedules(direct, nightly().schedules) for _ in range(10)))
    assert len(await jobs(direct)) == 1


async def test_a_change_in_code_changes_the_job_in_place(direct: Direct) -> None:
    await store_schedules(direct, nightly(1).schedules)
    (before,) = await jobs(direct)
    assert await store_schedules(direct, nightly(2).schedules) == ["schedule:clean"]
    (after,) = await jobs(direct)
    assert (after["id"], after["cron"]) == (before["id"], "30 2 * * *")


async def test_an_operators_pause_stays(direct: Direct) -> None:
    await store_schedules(direct, nightly(1).schedules)
    (job,) = await jobs(direct)
    await direct.pause_job(str(job["id"]))
    await store_schedules(direct, nightly(1).schedules)
    await store_schedules(direct, nightly(2).schedules)
    (after,) = await jobs(direct)
    assert (after["status"], after["cron"]) == ("paused", "30 2 * * *")


async def test_an_operators_edit_stays_until_the_code_changes(direct: Direct) -> None:
    await store_schedules(direct, nightly(1).schedules)
    (job,) = await jobs(direct)
    await direct.patch_job(str(job["id"]), {"cron": "0 5 * * *"})
    await store_schedules(direct, nightly(1).schedules)
    assert (await jobs(direct))[0]["cron"] == "0 5 * * *"
    await store_schedules(direct, nightly(2).schedules)
    assert (await jobs(direct))[0]["cron"] == "30 2 * * *"


async def test_every_and_a_payload(direct: Direct) -> None:
    app = Mainspring()

    @app.every("5m", payload={"to": "a@b.c"}, key="greetings", max_runs=3)
    async def greet(to: str) -> None: ...

    await store_schedules(direct, app.schedules)
    (job,) = await jobs(direct)
    assert (job["every"], job["payload"], job["key"], job["max_runs"]) == ("5m", {"to": "a@b.c"}, "greetings", 3)


def test_two_schedules_of_one_key_are_refused() -> None:
    app = nightly()
    with pytest.raises(InvalidInput, match="two schedules have the key 'schedule:clean'"):
        app.every("1m", key="schedule:clean", name="other")(lambda: None)


@pytest.mark.parametrize(
    ("cron", "timezone", "field"), [("61 * * * *", "UTC", "/cron"), ("0 9 * * *", "Mars/Olympus", "/timezone")]
)
def test_a_wrong_schedule_is_refused_where_it_is_written(cron: str, timezone: str, field: str) -> None:
    app = Mainspring()
    with pytest.raises(InvalidInput, match=field):
        app.cron(cron, timezone=timezone, name="never")(lambda: None)


def two() -> Mainspring:
    app = nightly()
    app.every("5m", name="often")(lambda: None)
    return app


async def start(direct: Direct, app: Mainspring) -> list[str]:
    await store_schedules(direct, app.schedules)
    return await disable_removed(direct, app.schedules, app.modules)


async def statuses(direct: Direct) -> dict[object, object]:
    return {job["key"]: job["status"] for job in await jobs(direct)}


async def test_a_schedule_that_is_declared_no_more_is_paused_and_comes_back_with_its_code(direct: Direct) -> None:
    assert await start(direct, two()) == []
    assert await start(direct, nightly()) == ["schedule:often"]
    assert await start(direct, nightly()) == []
    assert await statuses(direct) == {"schedule:clean": "active", "schedule:often": "paused"}
    assert await start(direct, two()) == []
    assert await statuses(direct) == {"schedule:clean": "active", "schedule:often": "active"}


async def test_what_others_made_is_left_alone(direct: Direct) -> None:
    await direct.create_job({"task": "clean", "every": "1h", "key": "by-hand"})
    await store_schedules(direct, [replace(each, module="elsewhere", key="theirs") for each in nightly().schedules])
    assert await start(direct, Mainspring()) == []
    assert await start(direct, two()) == []
    assert set((await statuses(direct)).values()) == {"active"}


async def test_an_operator_may_take_up_again_what_the_code_left(direct: Direct) -> None:
    await start(direct, two())
    await start(direct, nightly())
    job = next(job for job in await jobs(direct) if job["key"] == "schedule:often")
    await direct.resume_job(str(job["id"]))
    assert await start(direct, nightly()) == []
    assert (await statuses(direct))["schedule:often"] == "active"


async def test_a_plan_tells_what_a_start_would_change(direct: Direct) -> None:
    async def changes(app: Mainspring) -> dict[str, tuple[str, tuple[str, ...]]]:
        return {each.key: (each.change, each.fields) for each in await planned(direct, app.schedules, app.modules)}

    assert await changes(two()) == {"schedule:clean": ("create", ()), "schedule:often": ("create", ())}
    await start(direct, two())
    assert await changes(two()) == {"schedule:clean": ("keep", ()), "schedule:often": ("keep", ())}
    assert await changes(nightly(2)) == {"schedule:clean": ("update", ("cron",)), "schedule:often": ("disable", ())}
    await start(direct, nightly())
    assert (await changes(nightly()))["schedule:often"] == ("keep", ())
    assert (await changes(two()))["schedule:often"][0] == "enable"
