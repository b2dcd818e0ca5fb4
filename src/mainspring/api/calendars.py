"""The routes about calendars."""

from __future__ import annotations

from urllib.parse import quote

from mainspring.api import schemas
from mainspring.api.routing import Answer, Body, Call, Query, Route, Success
from mainspring.client.views import Json, etag_of

TAG = "calendars"
_PATH = "/v1/calendars/{calendar}"
_CALENDAR = Success(200, "The calendar", schemas.ref("Calendar"), headers=("ETag",))
_NEW = Success(201, "The calendar, which is new", schemas.ref("Calendar"), headers=("Location", "ETag"))


async def list_all(call: Call) -> Answer:
    return Answer(await call.client.list_calendars(**call.query))


async def read(call: Call) -> Answer:
    return _calendar(await call.client.get_calendar(call.path["calendar"]))


async def put(call: Call) -> Answer:
    name, if_match = call.path["calendar"], call.headers.get("if-match")
    calendar, new = await call.client.set_calendar(name, call.body, if_match=if_match)
    if not new:
        return _calendar(calendar)
    return Answer(calendar, 201, {"Location": f"/v1/calendars/{quote(name)}", "ETag": _etag(calendar)})


async def delete(call: Call) -> Answer:
    if_match = call.headers.get("if-match")
    return Answer(await call.client.delete_calendar(call.path["calendar"], if_match=if_match))


def _calendar(calendar: Json) -> Answer:
    return Answer(calendar, headers={"ETag": _etag(calendar)})


def _etag(calendar: Json) -> str:
    version = calendar["version"]
    assert isinstance(version, int)
    return etag_of(version)


ROUTES = (
    Route(
        "GET",
        "/v1/calendars",
        "list_calendars",
        "The calendars of the namespace",
        list_all,
        TAG,
        (Success(200, "A page of calendars", schemas.ref("CalendarPage")),),
        (
            Query("limit", {**schemas.LIMIT, "default": 1000}, "How many"),
            Query("cursor", {"type": "string", "minLength": 1, "maxLength": 1500}, "`next` of the page before"),
        ),
    ),
    Route("GET", _PATH, "get_calendar", "Read a calendar", read, TAG, (_CALENDAR,), fails=(404,)),
    Route(
        "PUT",
        _PATH,
        "put_calendar",
        "Create a calendar or replace it; jobs that use it are planned anew",
        put,
        TAG,
        (_NEW, _CALENDAR),
        (),
        Body(schemas.ref("CalendarInput")),
        (412, 413),
        ("If-Match",),
        seconds_max=60,
    ),
    Route(
        "DELETE",
        _PATH,
        "delete_calendar",
        "Remove a calendar that no job uses",
        delete,
        TAG,
        (Success(200, "The calendar as it was", schemas.ref("Calendar")),),
        (),
        None,
        (404, 409, 412),
        ("If-Match",),
    ),
)
