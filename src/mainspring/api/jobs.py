"""The routes about jobs."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.api import schemas
from mainspring.api.body import BATCH_BYTES_MAX
from mainspring.api.routing import Answer, Body, Call, Query, Route, Success
from mainspring.client.reading import JOB_FILTERS, JOB_STATUSES, KINDS
from mainspring.client.views import Json, etag_of
from mainspring.core.errors import InvalidInput

TAG = "jobs"
_STRICT = Query("strict_tasks", schemas.FLAG, "Refuse a task that no worker has registered")
_PAGE = (
    Query("limit", schemas.LIMIT, "How many"),
    Query("cursor", schemas.CURSOR, "`next` of the page before"),
)
_ABOUT_FILTERS: Mapping[str, tuple[schemas.Schema, str]] = {
    "status": (schemas.words(*JOB_STATUSES), "May be given more than once"),
    "kind": (schemas.words(*KINDS), "How many runs, and when"),
    "q": (schemas.TEXT, "The beginning of a name, key or task"),
    "created_after": (schemas.TIME, "Created at or after"),
    "created_before": (schemas.TIME, "Created before"),
    "next_before": (schemas.TIME, "Next run before"),
}
_FILTERS = tuple(
    Query(name, *_ABOUT_FILTERS.get(name, (schemas.TEXT, f"Of this {name}")), many=name == "status")
    for name in JOB_FILTERS
)
_PAYLOAD_FILTER = Query("payload.*", schemas.TEXT, "Of this value in a field of the payload")
_JOB = Success(200, "The job", schemas.ref("Job"), headers=("ETag",))
_RUNS = Success(200, "Runs and skipped occurrences, newest first", schemas.ref("RunPage"))


async def create(call: Call) -> Answer:
    return _created(await call.client.create(call.body, ids=call.ids, strict_tasks=_flag(call, "strict_tasks")))


async def create_batch(call: Call) -> Answer:
    assert isinstance(call.body, list)
    answer = await call.client.create_batch(call.body, ids=call.ids, strict_tasks=_flag(call, "strict_tasks"))
    return Answer(answer, 201)


async def put_by_key(call: Call) -> Answer:
    job, new = await call.client.put_by_key(call.path["key"], call.body, if_match=call.headers.get("if-match"))
    return _created(job) if new else _job(job)


async def list_all(call: Call) -> Answer:
    return Answer(await call.client.list_jobs(**call.query))


async def read(call: Call) -> Answer:
    return _job(await call.client.get_job(call.path["id"]))


async def change(call: Call) -> Answer:
    if not isinstance(call.body, Mapping):
        raise InvalidInput.at("", "must be an object with the fields to change")
    return _job(await call.client.patch_job(call.path["id"], call.body, if_match=call.headers.get("if-match")))


async def delete(call: Call) -> Answer:
    return Answer(await call.client.delete_job(call.path["id"], if_match=call.headers.get("if-match")))


async def pause(call: Call) -> Answer:
    return _job(await call.client.pause_job(call.path["id"]))


async def resume(call: Call) -> Answer:
    return _job(await call.client.resume_job(call.path["id"], call.body_object()))


async def cancel(call: Call) -> Answer:
    return _job(await call.client.cancel_job(call.path["id"]))


async def trigger(call: Call) -> Answer:
    return Answer(await call.client.trigger_job(call.path["id"], ids=call.ids))


async def coming(call: Call) -> Answer:
    return Answer(await call.client.next_occurrences(call.path["id"], str(call.query.get("count", 10))))


async def preview(call: Call) -> Answer:
    if not isinstance(call.body, Mapping):
        raise InvalidInput.at("", "must be an object with the fields of a schedule")
    return Answer(await call.client.preview(call.body))


async def runs(call: Call) -> Answer:
    return Answer(await call.client.job_runs(call.path["id"], **call.query))


def _job(job: Json) -> Answer:
    return Answer(job, headers={"ETag": _etag(job)})


def _created(job: Json) -> Answer:
    return Answer(job, 201, {"Location": f"/v1/jobs/{job['id']}", "ETag": _etag(job)})


def _etag(job: Json) -> str:
    version = job["version"]
    assert isinstance(version, int)
    return etag_of(version)


def _flag(call: Call, name: str) -> bool:
    value = call.query.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidInput.at(f"/{name}", "must be true or false")
    return value == "true"


_NEW = Success(201, "The job as it is stored", schemas.ref("Job"), headers=("Location", "ETag"))
_INPUT = Body(schemas.ref("JobInput"))

ROUTES = (
    Route("POST", "/v1/jobs", "create_job", "Submit a job", create, TAG, (_NEW,), (_STRICT,), _INPUT, (409, 413, 429)),
    Route(
        "POST",
        "/v1/jobs:batch",
        "create_jobs",
        "Submit up to 10,000 jobs in one transaction",
        create_batch,
        TAG,
        (Success(201, "Their ids, in order", schemas.ref("BatchAnswer")),),
        (_STRICT,),
        Body(schemas.ref("JobBatch"), bytes_max=BATCH_BYTES_MAX, batch=True),
        (409, 413, 429),
        seconds_max=60,
    ),
    Route(
        "PUT",
        "/v1/jobs/by-key/{key}",
        "put_job_by_key",
        "Create the job of this key, or replace its definition",
        put_by_key,
        TAG,
        (_NEW, _JOB),
        (),
        Body(schemas.ref("JobByKeyInput")),
        (409, 412, 413, 429),
        ("If-Match",),
    ),
    Route(
        "GET",
        "/v1/jobs",
        "list_jobs",
        "List jobs, newest first",
        list_all,
        TAG,
        (Success(200, "A page of jobs", schemas.ref("JobPage")),),
        (*_PAGE, *_FILTERS, _PAYLOAD_FILTER),
    ),
    Route("GET", "/v1/jobs/{id}", "get_job", "Read a job", read, TAG, (_JOB,)),
    Route(
        "PATCH",
        "/v1/jobs/{id}",
        "patch_job",
        "Change a job that has not become a run",
        change,
        TAG,
        (_JOB,),
        (),
        Body(schemas.ref("JobChanges")),
        (409, 412, 413),
        ("If-Match",),
    ),
    Route(
        "DELETE",
        "/v1/jobs/{id}",
        "delete_job",
        "Cancel a job and remove its definition; its runs stay",
        delete,
        TAG,
        (Success(200, "The job as it was left", schemas.ref("Job")),),
        (),
        None,
        (412,),
        ("If-Match",),
    ),
    Route("POST", "/v1/jobs/{id}/pause", "pause_job", "Fire no more until resumed", pause, TAG, (_JOB,), fails=(409,)),
    Route(
        "POST",
        "/v1/jobs/{id}/resume",
        "resume_job",
        "Fire again; what fell due meanwhile is skipped unless asked for",
        resume,
        TAG,
        (_JOB,),
        (),
        Body(schemas.ref("ResumeInput"), required=False),
        (409,),
    ),
    Route("POST", "/v1/jobs/{id}/cancel", "cancel_job", "End what has not ended", cancel, TAG, (_JOB,), fails=(409,)),
    Route(
        "POST",
        "/v1/jobs/{id}/trigger",
        "trigger_job",
        "Run now, whatever the schedule",
        trigger,
        TAG,
        (Success(200, "The run", schemas.ref("Run")),),
        fails=(409,),
    ),
    Route(
        "GET",
        "/v1/jobs/{id}/next",
        "next_occurrences",
        "The coming occurrences",
        coming,
        TAG,
        (Success(200, "Occurrences in order", schemas.ref("Occurrences")),),
        (Query("count", {**schemas.LIMIT, "default": 10}, "How many"),),
    ),
    Route(
        "POST",
        "/v1/preview",
        "preview",
        "The occurrences of a schedule that need not be stored",
        preview,
        TAG,
        (Success(200, "Occurrences, and what differs from a stored job", schemas.ref("Preview")),),
        (),
        Body(schemas.ref("PreviewInput")),
        (404, 413),
    ),
    Route("GET", "/v1/jobs/{id}/runs", "job_runs", "The runs of a job", runs, TAG, (_RUNS,), _PAGE),
    Route("GET", "/v1/jobs/{id}/executions", "job_executions", "The runs of a job", runs, TAG, (_RUNS,), _PAGE),
)
