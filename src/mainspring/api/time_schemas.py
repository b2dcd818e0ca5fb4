"""The shapes of what the API says about calendars and time."""

from __future__ import annotations

from mainspring.api import schemas
from mainspring.api.schemas import Schema, array, closed, nullable, page, shape, words
from mainspring.client.timeline import BACKFILL_DEFAULT, BACKFILL_MAX
from mainspring.core.calendar_read import MOST_DATES, WEEKDAYS
from mainspring.core.submission import DEFAULTS

_DATES: Schema = array({"type": "string", "format": "date"}, maxItems=MOST_DATES)
_IGNORED: Schema = {"description": "As it was read; ignored"}
_CALENDAR: dict[str, Schema] = {
    "dates": _DATES,
    "days_off": array(words(*WEEKDAYS)),
    "icalendar": nullable({"type": "string", "description": "iCalendar text whose events are days off"}),
}

TIME_COMPONENTS: dict[str, Schema] = {
    "Explanation": shape(
        {
            "subject": schemas.TEXT,
            "status": schemas.TEXT,
            "why": schemas.TEXT,
            "gates": array(
                shape(
                    {
                        "gate": schemas.TEXT,
                        "open": schemas.FLAG,
                        "detail": schemas.TEXT,
                        "opens_when": nullable(schemas.TEXT),
                    }
                )
            ),
        }
    ),
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
    "JobVersion": shape(
        {
            "version": schemas.COUNT,
            "since": schemas.TIME,
            "until": nullable(schemas.TIME),
            **{name: schemas.output_field(name) for name in DEFAULTS},
        }
    ),
    "JobVersionPage": page("JobVersion"),
    "BackfillInput": closed(
        {
            "from": schemas.TIME,
            "to": schemas.TIME,
            "limit": nullable({"type": "integer", "minimum": 1, "maximum": BACKFILL_MAX, "default": BACKFILL_DEFAULT}),
            "order": nullable(words("oldest", "newest", "asc", "desc")),
            "overlap": nullable(words("skip", "queue_one", "queue_all", "cancel", "allow")),
            "rerun": nullable(schemas.FLAG),
            "dry_run": nullable(schemas.FLAG),
        },
        "from",
        "to",
    ),
    "Backfill": shape(
        {
            "items": array(schemas.ref("Occurrence")),
            "count": schemas.COUNT,
            "more": schemas.FLAG,
            "dry_run": schemas.FLAG,
        },
        {"runs": array(schemas.ID)},
    ),
}
