"""The shapes of what the API says about calendars and time."""

from __future__ import annotations

from mainspring.api import schemas
from mainspring.api.schemas import Schema, array, closed, nullable, page, shape, words
from mainspring.core.calendar_read import MOST_DATES, WEEKDAYS

_DATES: Schema = array({"type": "string", "format": "date"}, maxItems=MOST_DATES)
_IGNORED: Schema = {"description": "As it was read; ignored"}
_CALENDAR: dict[str, Schema] = {
    "dates": _DATES,
    "days_off": array(words(*WEEKDAYS)),
    "icalendar": nullable({"type": "string", "description": "iCalendar text whose events are days off"}),
}

TIME_COMPONENTS: dict[str, Schema] = {
    "Calendar": shape(
        {"name": schemas.TEXT, **_CALENDAR, "version": schemas.COUNT, "updated_at": schemas.TIME},
    ),
    "CalendarInput": closed(
        {
            "name": schemas.NAME,
            "version": _IGNORED,
            "updated_at": _IGNORED,
            "dates": nullable(_DATES),
            "days_off": nullable(array(words(*WEEKDAYS))),
            "icalendar": _CALENDAR["icalendar"],
        }
    ),
    "CalendarPage": page("Calendar"),
}
