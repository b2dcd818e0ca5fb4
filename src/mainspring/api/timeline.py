"""The routes about a job's past."""

from __future__ import annotations

from mainspring.api import schemas
from mainspring.api.routing import Answer, Body, Call, Route, Success
from mainspring.client.views import etag_of
from mainspring.core.errors import InvalidInput

TAG = "jobs"


async def versions(call: Call) -> Answer:
    return Answer(await call.client.job_versions(call.path["id"]))


async def backfill(call: Call) -> Answer:
    body = call.body_object()
    if body is None:
        raise InvalidInput.at("", "must be an object that says from when to when")
    return Answer(await call.client.backfill_job(call.path["id"], body, ids=call.ids))


async def skip_next(call: Call) -> Answer:
    job = await call.client.skip_next(call.path["id"])
    version = job["version"]
    assert isinstance(version, int)
    return Answer(job, headers={"ETag": etag_of(version)})


ROUTES = (
    Route(
        "POST",
        "/v1/jobs/{id}/skip-next",
        "skip_next",
        "Leave out the next occurrence",
        skip_next,
        TAG,
        (Success(200, "The job", schemas.ref("Job"), headers=("ETag",)),),
        fails=(409,),
    ),
    Route(
        "GET",
        "/v1/jobs/{id}/versions",
        "job_versions",
        "The definitions of a job, newest first",
        versions,
        TAG,
        (Success(200, "Its definitions", schemas.ref("JobVersionPage")),),
    ),
    Route(
        "POST",
        "/v1/jobs/{id}/backfill",
        "backfill_job",
        "Run instants that have gone by",
        backfill,
        TAG,
        (Success(200, "The instants, and their runs", schemas.ref("Backfill")),),
        (),
        Body(schemas.ref("BackfillInput")),
        (409,),
        seconds_max=60,
    ),
)
