"""The routes about runs, their logs and dead letters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import msgspec

from mainspring.api import schemas
from mainspring.api.routing import Answer, Body, Call, Query, Route, Success
from mainspring.client.reading import RUN_FILTERS, RUN_STATUSES
from mainspring.client.views import Json
from mainspring.core.errors import InvalidInput, MainspringError

TAG = "runs"
_HEARTBEAT_SECONDS = 15.0
_EVENTS = "text/event-stream"
_PAGE = (
    Query("limit", schemas.LIMIT, "How many"),
    Query("cursor", schemas.CURSOR, "`next` of the page before"),
)
_ABOUT_FILTERS: Mapping[str, tuple[schemas.Schema, str]] = {
    "status": (schemas.words(*RUN_STATUSES), "May be given more than once"),
    "job_id": (schemas.ID, "Of this job"),
    "worker": (schemas.ID, "Carried out by this worker"),
    "from": (schemas.TIME, "Due at or after"),
    "to": (schemas.TIME, "Due before"),
    "error": (schemas.TEXT, "Of this type of error, or with this in its message"),
}
_FILTERS = tuple(
    Query(name, *_ABOUT_FILTERS.get(name, (schemas.TEXT, f"Of this {name}")), many=name == "status")
    for name in RUN_FILTERS
)
_RUN = Success(200, "The run", schemas.ref("Run"))
_RUNS = Success(200, "A page of runs", schemas.ref("RunPage"))


async def list_all(call: Call) -> Answer:
    return Answer(await call.client.list_runs(**call.query))


async def read(call: Call) -> Answer:
    return Answer(await call.client.get_run(call.path["id"]))


async def logs(call: Call) -> Answer:
    follow = call.query.get("follow", "true" if _EVENTS in call.headers.get("accept", "") else "false")
    if follow not in ("true", "false"):
        raise InvalidInput.at("/follow", "must be true or false")
    after = str(call.query.get("cursor", call.headers.get("last-event-id", "0")))
    if follow == "false":
        return Answer(await call.client.run_logs(call.path["id"], after, str(call.query.get("limit", 1000))))
    await call.client.run_logs(call.path["id"], after, 1)  # an unknown run is told before the stream begins
    return Answer(lines=as_events(call.client.follow_logs(call.path["id"], after)), media=_EVENTS)


async def as_events(lines: AsyncIterator[Json]) -> AsyncIterator[bytes]:
    """Server-sent events: each line as JSON under its number, and a comment when nothing comes for a while."""
    waiting = asyncio.ensure_future(anext(lines, None))
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=_HEARTBEAT_SECONDS)
            if not done:
                yield b": still here\n\n"
                continue
            line = waiting.result()
            if line is None:
                return
            yield _event(line)
            waiting = asyncio.ensure_future(anext(lines, None))
    except MainspringError as error:
        yield b": " + str(error).replace("\n", " ").encode() + b"\n\n"
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, MainspringError):
            await waiting


def _event(line: Json) -> bytes:
    return b"id: " + str(line["number"]).encode() + b"\ndata: " + msgspec.json.encode(line) + b"\n\n"


async def cancel(call: Call) -> Answer:
    return Answer(await call.client.cancel_run(call.path["id"]))


async def retry(call: Call) -> Answer:
    return Answer(await call.client.retry_run(call.path["id"], call.body_object(), ids=call.ids))


async def resolve(call: Call) -> Answer:
    return Answer(await call.client.resolve_run(call.path["id"], call.body_object() or {}))


async def list_dead(call: Call) -> Answer:
    return Answer(await call.client.list_dead_letters(**call.query))


async def replay(call: Call) -> Answer:
    return Answer(await call.client.replay_dead_letter(call.path["id"], call.body_object(), ids=call.ids))


async def discard(call: Call) -> Answer:
    return Answer(await call.client.discard_dead_letter(call.path["id"]))


ROUTES = (
    Route("GET", "/v1/runs", "list_runs", "List runs, newest first", list_all, TAG, (_RUNS,), (*_PAGE, *_FILTERS)),
    Route("GET", "/v1/runs/{id}", "get_run", "Read a run", read, TAG, (_RUN,)),
    Route(
        "GET",
        "/v1/runs/{id}/logs",
        "run_logs",
        "The log lines of a run, or a live tail of them",
        logs,
        TAG,
        (
            Success(200, "Lines in order", schemas.ref("LogPage")),
            Success(200, "Lines as they come", None, _EVENTS),
        ),
        (
            Query("limit", {**schemas.LIMIT, "default": 1000}, "How many"),
            Query("cursor", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "`next` of the page before"),
            Query("follow", schemas.FLAG, "Tail the log as server-sent events until the run has ended"),
        ),
    ),
    Route("POST", "/v1/runs/{id}/cancel", "cancel_run", "End a run", cancel, TAG, (_RUN,), fails=(409,)),
    Route(
        "POST",
        "/v1/runs/{id}/retry",
        "retry_run",
        "Go on with a retrying run now; run an ended one again",
        retry,
        TAG,
        (_RUN,),
        (),
        Body(schemas.ref("RetryInput"), required=False),
        (409,),
    ),
    Route(
        "POST",
        "/v1/runs/{id}/resolve",
        "resolve_run",
        "Say what became of an unknown run",
        resolve,
        TAG,
        (_RUN,),
        (),
        Body(schemas.ref("ResolveInput")),
        (409,),
    ),
    Route(
        "GET",
        "/v1/dead-letters",
        "list_dead_letters",
        "Failed runs that wait for a person",
        list_dead,
        "dead letters",
        (_RUNS,),
        (*_PAGE, *_FILTERS),
    ),
    Route(
        "POST",
        "/v1/dead-letters/{id}/replay",
        "replay_dead_letter",
        "Run it again, with another payload if one is given",
        replay,
        "dead letters",
        (Success(200, "The new run", schemas.ref("Run")),),
        (),
        Body(schemas.ref("ReplayInput"), required=False),
        (409, 413),
    ),
    Route(
        "POST",
        "/v1/dead-letters/{id}/discard",
        "discard_dead_letter",
        "Take it out of the dead letters",
        discard,
        "dead letters",
        (_RUN,),
        fails=(409,),
    ),
)
