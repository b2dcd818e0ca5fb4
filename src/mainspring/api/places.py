"""The routes about queues, workers, schedulers, numbers and health."""

from __future__ import annotations

from mainspring.api import schemas
from mainspring.api.routing import Answer, Body, Call, Query, Route, Success

TAG = "queues and workers"
_PAGE = (
    Query("limit", {**schemas.LIMIT, "default": 1000}, "How many"),
    Query("cursor", {"type": "string", "minLength": 1, "maxLength": 1500}, "`next` of the page before"),
)
_QUEUE = Success(200, "The queue", schemas.ref("Queue"))


async def list_queues(call: Call) -> Answer:
    return Answer(await call.client.list_queues(**call.query))


async def pause_queue(call: Call) -> Answer:
    return Answer(await call.client.pause_queue(call.path["queue"]))


async def resume_queue(call: Call) -> Answer:
    return Answer(await call.client.resume_queue(call.path["queue"]))


async def set_queue(call: Call) -> Answer:
    return Answer(await call.client.set_queue(call.path["queue"], call.body_object() or {}))


async def purge_queue(call: Call) -> Answer:
    return Answer(await call.client.purge_queue(call.path["queue"]))


async def list_workers(call: Call) -> Answer:
    return Answer(await call.client.list_workers(**call.query))


async def drain_worker(call: Call) -> Answer:
    return Answer(await call.client.drain_worker(call.path["id"]))


async def list_schedulers(call: Call) -> Answer:
    return Answer(await call.client.list_schedulers(**call.query))


async def stats(call: Call) -> Answer:
    return Answer(await call.client.stats())


async def alive(call: Call) -> Answer:
    del call
    return Answer({"status": "ok"})


async def ready(call: Call) -> Answer:
    await call.client.ping()
    return Answer({"status": "ok"})


ROUTES = (
    Route(
        "GET",
        "/v1/queues",
        "list_queues",
        "The queues and what stands in them",
        list_queues,
        TAG,
        (Success(200, "A page of queues", schemas.ref("QueuePage")),),
        _PAGE,
    ),
    Route("POST", "/v1/queues/{queue}/pause", "pause_queue", "Take nothing from it", pause_queue, TAG, (_QUEUE,)),
    Route("POST", "/v1/queues/{queue}/resume", "resume_queue", "Take from it again", resume_queue, TAG, (_QUEUE,)),
    Route(
        "POST",
        "/v1/queues/{queue}/purge",
        "purge_queue",
        "Cancel everything that waits in it",
        purge_queue,
        TAG,
        (Success(200, "How many were cancelled", schemas.ref("Purged")),),
        seconds_max=60,
    ),
    # A queue's name may hold slashes: this one comes after the longer paths.
    Route(
        "PUT",
        "/v1/queues/{queue}",
        "set_queue",
        "Set its limits",
        set_queue,
        TAG,
        (_QUEUE,),
        (),
        Body(schemas.ref("QueueInput")),
    ),
    Route(
        "GET",
        "/v1/workers",
        "list_workers",
        "The worker processes",
        list_workers,
        TAG,
        (Success(200, "A page of workers", schemas.ref("WorkerPage")),),
        _PAGE,
    ),
    Route(
        "POST",
        "/v1/workers/{id}/drain",
        "drain_worker",
        "Let it finish what it holds and stop",
        drain_worker,
        TAG,
        (Success(200, "The worker", schemas.ref("Worker")),),
    ),
    Route(
        "GET",
        "/v1/schedulers",
        "list_schedulers",
        "The schedulers",
        list_schedulers,
        TAG,
        (Success(200, "A page of schedulers", schemas.ref("SchedulerPage")),),
        _PAGE,
    ),
    Route(
        "GET",
        "/v1/stats",
        "stats",
        "Counts of what is live",
        stats,
        TAG,
        (Success(200, "The counts", schemas.ref("Stats")),),
    ),
    Route(
        "GET", "/livez", "livez", "Whether the program runs", alive, "health",
        (Success(200, "It does", schemas.ref("Health")),),
    ),
    Route(
        "GET", "/readyz", "readyz", "Whether the store answers", ready, "health",
        (Success(200, "It does", schemas.ref("Health")),),
    ),
)  # fmt: skip
