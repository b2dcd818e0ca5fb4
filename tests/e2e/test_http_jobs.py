"""Jobs over HTTP: created, listed, read, changed, and what comes next."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mainspring.client.direct import ClientSettings
from mainspring.core.model import TaskInfo
from mainspring.core.states import State
from tests.support.http import Served, served


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served() as started:
        await started.register()
        yield started


async def test_an_immediate_job_is_created_with_its_defaults(server: Served) -> None:
    response = await server.http.post("/v1/jobs", json={"task": "send", "payload": {"to": "a"}})
    job = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/v1/jobs/{job['id']}"
    assert response.headers["etag"] == '"1"'
    assert (job["kind"], job["status"], job["version"]) == ("immediate", "queued", 1)
    assert (job["queue"], job["priority"], job["timeout"], job["timezone"]) == ("default", 50, "1h", "UTC")
    assert job["retry"] == {
        "max_attempts": 3,
        "backoff": "exponential",
        "initial": "2s",
        "factor": 2,
        "max": "1h",
        "jitter": 0.1,
    }
    assert job["misfire"] == {"policy": "once", "window": None, "limit": 100}
    assert (job["tags"], job["after"], job["limits"], job["http"], job["at"]) == ([], [], [], None, None)
    assert job["created_at"].endswith("Z")
    assert await server.get(f"/v1/jobs/{job['id']}") == job
    run = await server.get(f"/v1/runs/{job['id']}")
    assert (run["job_id"], run["status"]) == (job["id"], "queued")


async def test_given_fields_are_echoed_as_given(server: Served) -> None:
    job = await server.submit(
        timeout="PT90S", expires_in=600, retry={"max_attempts": 7}, tags=["a"], metadata={"k": [1]}
    )
    assert (job["timeout"], job["expires_in"], job["tags"], job["metadata"]) == ("PT90S", 600, ["a"], {"k": [1]})
    assert job["retry"]["max_attempts"] == 7
    assert job["retry"]["initial"] == "2s"


async def test_an_unregistered_task_is_held_with_a_warning(server: Served) -> None:
    job = await server.submit(task="nobody_has_it")
    assert (job["status"], job["reason"]) == ("held", "no_worker")
    assert "nobody_has_it" in job["warnings"][0]
    await server.register(TaskInfo("nobody_has_it"))
    assert (await server.get(f"/v1/jobs/{job['id']}"))["status"] == "queued"


async def test_strict_tasks_refuses_what_nobody_registered(server: Served) -> None:
    problem = await server.refused("POST", "/v1/jobs?strict_tasks=true", 422, json={"task": "sand"})
    assert 'did you mean "send"?' in problem["errors"][0]["detail"]
    async with served(ClientSettings(strict_tasks=True)) as strict:
        await strict.refused("POST", "/v1/jobs", 422, json={"task": "send"})
        await strict.refused("POST", "/v1/jobs:batch", 422, json=[{"task": "send"}])


async def test_the_decorator_of_the_task_fills_in_what_is_left_out(server: Served) -> None:
    await server.register(TaskInfo("send", None, '{"queue":"mail","retry":{"max_attempts":9},"timeout":"7s"}'))
    job = await server.submit(timeout="8s")
    assert (job["queue"], job["timeout"], job["retry"]["max_attempts"]) == ("mail", "8s", 9)


async def test_the_payload_must_fit_the_signature_that_workers_registered(server: Served) -> None:
    signature = '{"parameters":[{"kind":"positional","name":"to","required":true,"schema":{"type":"string"}}]}'
    await server.register(TaskInfo("send", signature))
    problem = await server.refused(
        "POST", "/v1/jobs", 422, json={"task": "send", "payload": {"at": 1}, "priority": 999}
    )
    assert {error["pointer"] for error in problem["errors"]} == {"/payload/at", "/payload/to", "/priority"}
    await server.submit(payload=["x"])


async def test_a_changed_payload_must_fit_the_signature_too(server: Served) -> None:
    signature = '{"parameters":[{"kind":"positional","name":"to","required":true,"schema":{"type":"string"}}]}'
    await server.register(TaskInfo("send", signature))
    job = await server.submit(delay="1h", payload={"to": "a"})
    path = f"/v1/jobs/{job['id']}"
    problem = await server.refused("PATCH", path, 422, json={"payload": {"at": 1}})
    assert {error["pointer"] for error in problem["errors"]} == {"/payload/at", "/payload/to"}
    changed = await server.send("PATCH", path, json={"payload": {"to": "b"}})
    assert (changed["payload"], changed["version"]) == ({"to": "b"}, 2)


async def test_a_delayed_job_waits_for_its_time(server: Served) -> None:
    job = await server.submit(at="2026-12-01T12:00:00+01:00", expires_in="5m")
    assert (job["kind"], job["status"], job["next_run_at"]) == ("delayed", "scheduled", "2026-12-01T11:00:00.000Z")
    assert job["at"] == "2026-12-01T11:00:00.000Z"
    server.advance(3600)
    (run,) = await server.fire(job["id"])
    job = await server.get(f"/v1/jobs/{job['id']}")
    assert (job["status"], job["next_run_at"], job["last_run"]["id"]) == ("queued", None, run)


async def test_a_time_in_the_past_runs_at_once_and_says_so(server: Served) -> None:
    job = await server.submit(at="2026-12-01T09:00:00Z")
    assert (job["kind"], job["status"], job["reason"]) == ("immediate", "queued", "at_in_past")
    server.advance(0.25)
    claimed = await server.claim()
    run = await server.get(f"/v1/runs/{claimed.id}")
    assert (run["scheduled_at"], run["lateness_ms"], run["reason"]) == ("2026-12-01T09:00:00.000Z", 250, "at_in_past")


async def test_a_recurring_job_names_its_next_run(server: Served) -> None:
    job = await server.submit(cron="30 6 * * *", timezone="America/New_York")
    assert (job["kind"], job["status"], job["next_run_at"]) == ("recurring", "active", "2026-12-01T11:30:00.000Z")
    every = await server.submit(every="5m")
    server.advance(300)
    (run,) = await server.fire(every["id"])
    assert (await server.get(f"/v1/runs/{run}"))["scheduled_at"] == every["next_run_at"]


async def test_a_batch_answers_ids_in_order(server: Served) -> None:
    body = [{"task": "send", "payload": {"n": number}} for number in range(20)]
    answer = await server.post("/v1/jobs:batch", body, 201)
    for number, item in enumerate(answer["items"]):
        assert (await server.get(f"/v1/jobs/{item['id']}"))["payload"] == {"n": number}
    assert [(await server.claim()).payload for _ in range(3)] == [b'{"n":0}', b'{"n":1}', b'{"n":2}']


async def test_a_batch_of_lines(server: Served) -> None:
    lines = b'{"task":"send"}\n\n{"task":"other"}\n'
    headers = {"content-type": "application/x-ndjson"}
    answer = await server.send("POST", "/v1/jobs:batch", 201, content=lines, headers=headers)
    assert len(answer["items"]) == 2
    assert "other" in answer["warnings"][0]


async def test_a_batch_with_errors_stores_nothing_and_names_them_all(server: Served) -> None:
    problem = await server.refused(
        "POST", "/v1/jobs:batch", 422, json=[{"task": "send"}, {"task": 1}, 5, {"task": "send", "cron": "x"}]
    )
    assert {error["pointer"] for error in problem["errors"]} == {"/1/task", "/2", "/3/cron"}
    assert (await server.get("/v1/jobs"))["items"] == []


async def test_lists_page_through_with_a_cursor(server: Served) -> None:
    ids = [(await server.submit())["id"] for _ in range(5)]
    seen: list[str] = []
    path = "/v1/jobs?limit=2"
    while True:
        page = await server.get(path)
        seen += [job["id"] for job in page["items"]]
        if page["next"] is None:
            break
        path = f"/v1/jobs?limit=2&cursor={page['next']}"
    assert seen == ids[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=queued", {"a"}),
        ("status=queued,active", {"a", "b"}),
        ("status=queued&status=scheduled", {"a", "c"}),
        ("kind=recurring", {"b"}),
        ("task=send", {"a", "b"}),
        ("queue=mail", {"a"}),
        ("tag=red", {"b"}),
        ("key=the-key", {"c"}),
        ("q=Daily", {"b"}),
        ("q=the-", {"c"}),
        ("payload.customer=42", {"a"}),
        ("created_before=2026-12-01T09:00:00Z", set()),
        ("created_after=2026-12-01T09:00:00Z", {"a", "b", "c"}),
        ("next_before=2026-12-01T10:30:00Z", {"b"}),
        ("region=mars", set()),
        ("created_by=me", set()),
    ],
)
async def test_filters(server: Served, query: str, found: set[str]) -> None:
    jobs = {
        "a": await server.submit(queue="mail", payload={"customer": 42}),
        "b": await server.submit(every="20m", tags=["red"], name="Daily sales"),
        "c": await server.submit(task="other", delay="1h", key="the-key"),
    }
    names = {job["id"]: name for name, job in jobs.items()}
    assert {names[job["id"]] for job in (await server.get(f"/v1/jobs?{query}"))["items"]} == found


async def test_completed_jobs_leave_the_list_after_a_day_unless_asked_for(server: Served) -> None:
    await server.submit()
    await server.run_one()
    assert len((await server.get("/v1/jobs"))["items"]) == 1
    server.advance(25 * 3600)
    assert (await server.get("/v1/jobs"))["items"] == []
    assert len((await server.get("/v1/jobs?created_after=2026-01-01T00:00:00Z"))["items"]) == 1


async def test_a_change_raises_the_version_and_guards_with_if_match(server: Served) -> None:
    job = await server.submit(cron="0 9 * * *", key="k")
    path = f"/v1/jobs/{job['id']}"
    response = await server.http.patch(
        path, json={"timeout": "5s", "retry": {"max_attempts": 5}}, headers={"if-match": '"1"'}
    )
    changed = response.json()
    assert response.headers["etag"] == '"2"'
    assert (changed["version"], changed["timeout"], changed["retry"]["max_attempts"]) == (2, "5s", 5)
    assert changed["next_run_at"] == job["next_run_at"]
    await server.refused("PATCH", path, 412, json={"timeout": "6s"}, headers={"if-match": '"1"'})
    await server.refused("DELETE", path, 412, headers={"if-match": 'W/"1"'})
    same = await server.send("PATCH", path, json={"timeout": "5s"})
    assert same["version"] == 2


async def test_another_way_to_say_when_replaces_the_earlier_one(server: Served) -> None:
    job = await server.submit(cron="0 9 * * *")
    changed = await server.send("PATCH", f"/v1/jobs/{job['id']}", json={"every": "10m"})
    assert (changed["cron"], changed["every"], changed["next_run_at"]) == (None, "10m", "2026-12-01T10:10:01.100Z")
    both = {"every": "10m", "cron": "0 9 * * *"}
    await server.refused("PATCH", f"/v1/jobs/{job['id']}", 422, json=both)
    await server.refused("PATCH", f"/v1/jobs/{job['id']}", 422, json={"delay": "5m"})


async def test_an_edit_makes_no_misfires_and_loses_nothing_that_was_due(server: Served) -> None:
    job = await server.submit(every="10m", misfire={"policy": "all"})
    server.advance(25 * 60)
    changed = await server.send("PATCH", f"/v1/jobs/{job['id']}", json={"every": "7m"})
    runs = (await server.get(f"/v1/jobs/{job['id']}/runs"))["items"]
    assert [run["scheduled_at"] for run in runs] == ["2026-12-01T10:20:01.100Z", "2026-12-01T10:10:01.100Z"]
    assert changed["next_run_at"] == "2026-12-01T10:28:01.100Z"
    assert await server.fire(job["id"]) == []


async def test_a_delayed_job_can_be_moved_until_it_has_become_a_run(server: Served) -> None:
    job = await server.submit(delay="1h")
    path = f"/v1/jobs/{job['id']}"
    moved = await server.send("PATCH", path, json={"delay": "2h"})
    assert (moved["version"], moved["next_run_at"]) == (2, "2026-12-01T12:00:01.100Z")
    moved = await server.send("PATCH", path, json={"at": "2026-12-01T11:00:00Z", "payload": {"x": 1}, "priority": 99})
    assert (moved["delay"], moved["next_run_at"]) == (None, "2026-12-01T11:00:00.000Z")
    server.advance(3600)
    assert "becoming a run" in (await server.refused("PATCH", path, 409, json={"priority": 1}))["detail"]
    await server.fire(job["id"])
    assert "queued" in (await server.refused("PATCH", path, 409, json={"priority": 1}))["detail"]
    claimed = await server.claim()
    assert (claimed.payload, claimed.priority) == (b'{"x":1}', 99)


async def test_an_immediate_job_cannot_be_changed(server: Served) -> None:
    job = await server.submit()
    await server.refused("PATCH", f"/v1/jobs/{job['id']}", 409, json={"priority": 1})


async def test_wrong_changes_are_refused_like_wrong_submissions(server: Served) -> None:
    job = await server.submit(every="5m", key="k")
    for wrong, pointer in (
        ({"priority": "x"}, "/priority"),
        ({"status": "paused"}, "/status"),
        ({"key": None}, "/key"),
    ):
        problem = await server.refused("PATCH", f"/v1/jobs/{job['id']}", 422, json=wrong)
        assert problem["errors"][0]["pointer"] == pointer
    assert (await server.get(f"/v1/jobs/{job['id']}"))["version"] == 1


async def test_delete_cancels_and_forgets_the_job_but_not_its_runs(server: Served) -> None:
    job = await server.submit(every="5m", key="k")
    run = await server.post(f"/v1/jobs/{job['id']}/trigger")
    left = await server.send("DELETE", f"/v1/jobs/{job['id']}")
    assert (left["id"], left["status"], left["next_run_at"]) == (job["id"], "cancelled", None)
    assert left["last_run"]["status"] == "cancelled"
    await server.get(f"/v1/jobs/{job['id']}", 404)
    await server.get(f"/v1/jobs/{job['id']}/runs", 404)
    await server.refused("DELETE", f"/v1/jobs/{job['id']}", 404)
    assert (await server.get(f"/v1/runs/{run['id']}"))["status"] == "cancelled"
    assert (await server.submit(every="5m", key="k"))["id"] != job["id"]


async def test_delete_of_a_running_job_tells_that_it_runs(server: Served) -> None:
    job = await server.submit()
    await server.claim()
    assert (await server.send("DELETE", f"/v1/jobs/{job['id']}"))["status"] == "running"
    assert (await server.get(f"/v1/runs/{job['id']}"))["cancel_requested_at"] is not None


async def test_pause_and_resume_skip_what_fell_due(server: Served) -> None:
    job = await server.submit(every="10m")
    path = f"/v1/jobs/{job['id']}"
    paused = await server.post(f"{path}/pause")
    assert (paused["status"], paused["next_run_at"], paused["version"]) == ("paused", None, 2)
    assert (await server.post(f"{path}/pause"))["version"] == 2
    server.advance(35 * 60)
    assert await server.fire(job["id"]) == []
    resumed = await server.post(f"{path}/resume")
    assert (resumed["status"], resumed["next_run_at"]) == ("active", "2026-12-01T10:40:01.100Z")
    assert (await server.post(f"{path}/resume"))["version"] == resumed["version"]
    (record,) = (await server.get(f"{path}/runs"))["items"]
    assert (record["status"], record["reason"], record["count"], record["attempt"]) == ("skipped", "paused", 3, 0)


@pytest.mark.parametrize(("catch_up", "runs"), [("once", 1), ("all", 3)])
async def test_resume_catches_up_when_asked(server: Served, catch_up: str, runs: int) -> None:
    job = await server.submit(every="10m", overlap="allow")
    path = f"/v1/jobs/{job['id']}"
    await server.post(f"{path}/pause")
    server.advance(35 * 60)
    await server.post(f"{path}/resume", {"catch_up": catch_up})
    found = [run for run in (await server.get(f"{path}/runs"))["items"] if run["status"] != "skipped"]
    assert (len(found), all(run["catch_up"] for run in found)) == (runs, True)


async def test_a_replacement_by_key_may_insist_on_a_version(server: Served) -> None:
    path, body = "/v1/jobs/by-key/nightly", {"task": "send", "every": "1h"}
    await server.refused("PUT", path, 412, json=body, headers={"If-Match": '"1"'})
    job = await server.send("PUT", path, 201, json=body)
    changed = await server.send("PUT", path, json={**body, "every": "2h"}, headers={"If-Match": '"1"'})
    assert (changed["id"], changed["version"]) == (job["id"], 2)
    await server.refused("PUT", path, 412, json=body, headers={"If-Match": '"1"'})
    assert (await server.get(f"/v1/jobs/{job['id']}"))["every"] == "2h"


@pytest.mark.parametrize(("catch_up", "runs", "skipped"), [("once", 1, ["paused"]), ("all", 3, [])])
async def test_nothing_of_a_short_pause_counts_as_late(
    server: Served, catch_up: str, runs: int, skipped: list[str]
) -> None:
    job = await server.submit(every="1s")
    path = f"/v1/jobs/{job['id']}"
    await server.post(f"{path}/pause")
    server.advance(3.5)
    await server.post(f"{path}/resume", {"catch_up": catch_up})
    found = (await server.get(f"{path}/runs"))["items"]
    assert [run["catch_up"] for run in found if run["status"] != "skipped"] == [True] * runs
    assert [run["reason"] for run in found if run["status"] == "skipped"] == skipped


async def test_a_paused_one_time_job_runs_at_resume(server: Served) -> None:
    job = await server.submit(delay="10m")
    path = f"/v1/jobs/{job['id']}"
    assert (await server.post(f"{path}/pause"))["status"] == "paused"
    server.advance(3600)
    assert await server.fire(job["id"]) == []
    assert (await server.post(f"{path}/resume"))["status"] == "scheduled"
    assert len(await server.fire(job["id"])) == 1


async def test_actions_that_the_state_forbids_say_which_state(server: Served) -> None:
    job = await server.submit()
    path = f"/v1/jobs/{job['id']}"
    for action in ("pause", "resume"):
        assert "queued" in (await server.refused("POST", f"{path}/{action}", 409))["detail"]
    await server.run_one()
    assert "completed" in (await server.refused("POST", f"{path}/cancel", 409))["detail"]


async def test_cancel_is_final_and_repeatable(server: Served) -> None:
    job = await server.submit(every="5m")
    path = f"/v1/jobs/{job['id']}"
    run = await server.post(f"{path}/trigger")
    assert (await server.post(f"{path}/cancel"))["status"] == "cancelled"
    assert (await server.post(f"{path}/cancel"))["status"] == "cancelled"
    assert (await server.get(f"/v1/runs/{run['id']}"))["status"] == "cancelled"
    for action in ("pause", "resume", "trigger"):
        await server.refused("POST", f"{path}/{action}", 409)


async def test_cancel_of_a_running_job_asks_its_worker(server: Served) -> None:
    job = await server.submit()
    claimed = await server.claim()
    assert (await server.post(f"/v1/jobs/{job['id']}/cancel"))["status"] == "running"
    await server.finish(claimed, State.CANCELLED)
    assert (await server.get(f"/v1/jobs/{job['id']}"))["status"] == "cancelled"


async def test_trigger_obeys_overlap_and_moves_nothing(server: Served) -> None:
    job = await server.submit(every="5m")
    path = f"/v1/jobs/{job['id']}"
    run = await server.post(f"{path}/trigger")
    assert (run["origin"], run["job_id"], run["status"]) == ("trigger", job["id"], "queued")
    await server.refused("POST", f"{path}/trigger", 409)
    await server.run_one()
    after = await server.get(path)
    assert (after["next_run_at"], after["last_run"]["status"]) == (job["next_run_at"], "completed")
    await server.post(f"{path}/pause")
    await server.post(f"{path}/trigger")


async def test_trigger_of_a_delayed_job_is_its_run(server: Served) -> None:
    job = await server.submit(delay="1h")
    run = await server.post(f"/v1/jobs/{job['id']}/trigger")
    assert (await server.get(f"/v1/jobs/{job['id']}"))["last_run"]["id"] == run["id"]
    server.advance(7200)
    assert len((await server.get(f"/v1/jobs/{job['id']}/executions"))["items"]) == 1


async def test_a_key_belongs_to_one_live_job(server: Served) -> None:
    job = await server.submit(key="k")
    problem = await server.refused("POST", "/v1/jobs", 409, json={"task": "send", "key": "k"})
    assert (problem["id"], job["id"] in problem["detail"]) == (job["id"], True)
    await server.run_one()
    assert (await server.submit(key="k"))["id"] != job["id"]


async def test_put_by_key_creates_then_replaces(server: Served) -> None:
    path = "/v1/jobs/by-key/sales/daily"
    made = await server.send("PUT", path, 201, json={"task": "send", "cron": "0 9 * * *", "tags": ["x"]})
    assert made["key"] == "sales/daily"
    new = await server.send("PUT", path, json={"task": "other", "cron": "0 10 * * *", "timeout": "5s"})
    assert (new["id"], new["version"], new["task"], new["tags"]) == (made["id"], 2, "other", [])
    assert (new["next_run_at"], new["timeout"]) == ("2026-12-02T10:00:00.000Z", "5s")
    same = await server.send("PUT", path, json={"task": "other", "cron": "0 10 * * *", "timeout": "5s"})
    assert same["version"] == 2
    await server.refused("PUT", path, 422, json={"task": "send", "key": "another"})
    await server.refused("PUT", path, 422, json={"task": "send"})


async def test_put_by_key_finds_a_run_in_its_way(server: Served) -> None:
    job = await server.submit(key="k")
    problem = await server.refused("PUT", "/v1/jobs/by-key/k", 409, json={"task": "send"})
    assert problem["id"] == job["id"]


async def test_next_shows_local_time_and_marks(server: Served) -> None:
    job = await server.submit(
        cron="30 2 * * *", timezone="Europe/Berlin", start_at="2027-03-27T12:00:00Z", dst={"gap": "skip"}
    )
    answer = await server.get(f"/v1/jobs/{job['id']}/next?count=2")
    assert answer["count"] == 2
    gap, following = answer["items"]
    assert (gap["fires"], gap["marks"]) == (False, ["dst_gap"])
    assert (following["at"], following["local"], following["timezone"]) == (
        "2027-03-29T00:30:00.000Z",
        "2027-03-29T02:30:00+02:00",
        "Europe/Berlin",
    )
    assert (await server.get(f"/v1/jobs/{(await server.submit())['id']}/next"))["items"] == []
    delayed = await server.submit(delay="1h")
    assert (await server.get(f"/v1/jobs/{delayed['id']}/next"))["items"][0]["at"] == delayed["next_run_at"]


async def test_next_stops_at_max_runs(server: Served) -> None:
    job = await server.submit(every="5m", max_runs=3)
    assert (await server.get(f"/v1/jobs/{job['id']}/next?count=1000"))["count"] == 3


async def test_preview_stores_nothing_and_compares(server: Served) -> None:
    answer = await server.post("/v1/preview", {"cron": "0 12 * * *", "count": 2, "from": "2026-12-24T00:00:00Z"})
    assert [item["at"] for item in answer["items"]] == ["2026-12-24T12:00:00.000Z", "2026-12-25T12:00:00.000Z"]
    assert "adds" not in answer
    job = await server.submit(cron="0 9,12 * * *")
    answer = await server.post("/v1/preview", {"cron": "0 12,15 * * *", "count": 3, "compare_with": job["id"]})
    assert [item["at"] for item in answer["adds"]] == ["2026-12-01T15:00:00.000Z"]
    assert [item["at"] for item in answer["drops"]] == ["2026-12-02T09:00:00.000Z"]
    assert len((await server.get("/v1/jobs"))["items"]) == 1
    await server.refused("POST", "/v1/preview", 422, json={"cron": "61 * * * *"})
    await server.refused("POST", "/v1/preview", 422, json={"task": "send"})
    await server.refused("POST", "/v1/preview", 404, json={"every": 60, "compare_with": "nope"})


async def test_the_settings_misfire_policy_is_shown(server: Served) -> None:
    async with served(ClientSettings(misfire="skip")) as other:
        job = await other.submit(every="5m")
        assert job["misfire"]["policy"] == "skip"
        assert (await other.submit(every="5m", misfire={"policy": "all"}))["misfire"]["policy"] == "all"


async def test_a_misfire_policy_for_all_is_that_of_jobs_that_name_none() -> None:
    """`MAINSPRING_MISFIRE`: shown, and obeyed by whoever decides."""
    async with served(ClientSettings(misfire="skip")) as server:
        await server.register()
        plain = await server.submit(every="10m")
        own = await server.submit(every="10m", misfire={"policy": "once"})
        assert (plain["misfire"]["policy"], own["misfire"]["policy"]) == ("skip", "once")
        server.advance(3600 + 301)
        paused = [await server.post(f"/v1/jobs/{job['id']}/pause") for job in (plain, own)]
        assert [each["last_run"] and each["last_run"]["status"] for each in paused] == ["skipped", "queued"]


async def test_a_preview_begins_where_it_is_told_and_compares(server: Served) -> None:
    job = await server.submit(cron="0 9 * * *", timezone="Europe/Berlin")
    body = {"cron": "0 10 * * *", "timezone": "Europe/Berlin", "from": "2027-03-27T00:00:00+01:00", "count": 3}
    found = await server.post("/v1/preview", body)
    assert [(each["at"][:16], each["local"][11:16]) for each in found["items"]] == [
        ("2027-03-27T09:00", "10:00"),
        ("2027-03-28T08:00", "10:00"),
        ("2027-03-29T08:00", "10:00"),
    ]
    compared = await server.post("/v1/preview", {**body, "compare_with": job["id"]})
    assert [each["local"][11:16] for each in compared["adds"]] == ["10:00"] * 3
    assert [each["local"][11:16] for each in compared["drops"]] == ["09:00"] * 3
