"""The routes that say why."""

from __future__ import annotations

from mainspring.api import schemas
from mainspring.api.routing import Answer, Call, Query, Route, Success
from mainspring.client.explaining import read_at

_ABOUT = Success(200, "The chain of gates", schemas.ref("Explanation"))


async def job(call: Call) -> Answer:
    return Answer(await call.client.explain_job(call.path["id"], read_at(call.query.get("at"))))


async def run(call: Call) -> Answer:
    return Answer(await call.client.explain_run(call.path["id"]))


ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{id}/explain",
        "explain_job",
        "Why the job does not run, or what becomes of an instant",
        job,
        "jobs",
        (_ABOUT,),
        (Query("at", schemas.TIME, "The instant asked about"),),
    ),
    Route("GET", "/v1/runs/{id}/explain", "explain_run", "Why the run does not go on", run, "runs", (_ABOUT,)),
)
