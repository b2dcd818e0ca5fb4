"""The shapes of the API as JSON Schema, for the OpenAPI document; what enforces them lies in core and client."""

from __future__ import annotations

from collections.abc import Mapping

from mainspring.client.reading import JOB_STATUSES, KINDS, LIMIT_MAX, RUN_STATUSES
from mainspring.core.fields import DESCRIPTION_MAX, NAME_MAX, TAGS_MAX
from mainspring.core.model import BATCH_JOBS_MAX
from mainspring.core.states import Outcome
from mainspring.core.submission import DEFAULTS, NOT_OFFERED

Schema = dict[str, object]

_NO_CONTROL = r"^[^\u0000-\u001f\u007f-\u009f]*$"


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema, **more: object) -> Schema:
    return {"type": "array", "items": items, **more}


def words(*known: str) -> Schema:
    return {"type": "string", "enum": list(known)}


def closed(properties: Mapping[str, Schema], *required: str) -> Schema:
    """An object of these fields only, as requests take it."""
    found: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def shape(properties: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with all of these fields, as answers have it."""
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
    }


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
ID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": 50}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": NAME_MAX, "pattern": _NO_CONTROL}
DURATION: Schema = {
    "description": 'Seconds as a number, "90s", "5m", "1h30m", "7d", or ISO 8601 such as "PT5M"',
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 3155760000},
        {"type": "string", "minLength": 1, "maxLength": 64},
    ],
}
MILLISECONDS: Schema = {"type": ["number", "null"], "minimum": 0}
PAYLOAD: Schema = {
    "description": "The task's arguments by name (a list: by position), at most 256 KiB",
    "type": ["object", "array"],
}
CURSOR: Schema = {"type": "string", "minLength": 1, "maxLength": 64}

_RETRY = {
    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 1000},
    "backoff": words("fixed", "linear", "exponential"),
    "initial": DURATION,
    "factor": {"type": "number", "minimum": 1, "maximum": 1000},
    "max": DURATION,
    "jitter": {"type": "number", "minimum": 0, "maximum": 1},
}
_MISFIRE = {
    "policy": words("skip", "once", "all"),
    "window": nullable(DURATION),
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
}
_DST = {"gap": words("after", "skip", "before"), "fold": words("first", "second", "both")}

_CALENDAR = {
    "name": NAME,
    "roll": words("skip", "next", "previous", "nearest"),
    "working_day": nullable({"type": "integer", "minimum": -23, "maximum": 23}),
}
_EXPRESSION: Schema = {"type": "string", "minLength": 1, "maxLength": NAME_MAX}

_JOB_FIELDS: dict[str, Schema] = {
    "task": NAME,
    "name": {"type": "string", "maxLength": NAME_MAX},
    "description": {"type": "string", "maxLength": DESCRIPTION_MAX},
    "key": {**NAME, "description": "Unique among the live jobs of the namespace"},
    "payload": PAYLOAD,
    "queue": NAME,
    "priority": {"type": "integer", "minimum": 0, "maximum": 100, "description": "Higher goes first"},
    "at": {**TIME, "description": "RFC 3339 with an offset; a time that has passed means now"},
    "delay": DURATION,
    "cron": {
        "description": "An expression of five fields, or several of which any may fire",
        "anyOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION, "minItems": 1, "maxItems": 32}],
    },
    "dialect": {"type": "string", "description": "Of cron: how many fields it has and what they mean"},
    "every_nth": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Only every n-th instant of cron"},
    "rrule": {"type": "string", "minLength": 1, "maxLength": DESCRIPTION_MAX, "description": "RFC 5545"},
    "calendar": OBJECT,
    "timezone": {"type": "string", "minLength": 1, "maxLength": 64},
    "every": DURATION,
    "dst": OBJECT,
    "start_at": TIME,
    "end_at": TIME,
    "max_runs": {"type": "integer", "minimum": 1, "maximum": 2**53},
    "jitter": DURATION,
    "spread": DURATION,
    "misfire": OBJECT,
    "overlap": words("skip", "queue_one", "queue_all", "cancel", "allow"),
    "timeout": DURATION,
    "cancel_grace": DURATION,
    "retry": OBJECT,
    "on_lost": words("retry", "fail", "hold"),
    "lost_after": DURATION,
    "expires_in": DURATION,
    "tags": array(NAME, maxItems=TAGS_MAX),
    "metadata": OBJECT,
}


def _input_field(name: str) -> Schema:
    if name in NOT_OFFERED:
        empty: Schema = {"type": "null", "description": f"Not offered by this server yet: {NOT_OFFERED[name]}"}
        return empty if DEFAULTS[name] is None else {"anyOf": [empty, array(ANY, maxItems=0)]}
    parts = {"retry": _RETRY, "misfire": _MISFIRE, "dst": _DST}
    schema = closed(parts[name]) if name in parts else _JOB_FIELDS[name]
    if name == "calendar":
        schema = {"anyOf": [NAME, closed(_CALENDAR, "name")]}
    return nullable(schema) if name == "timeout" or (DEFAULTS[name] is None and name != "task") else schema


def output_field(name: str) -> Schema:
    if name in NOT_OFFERED:
        return (
            nullable(OBJECT)
            if DEFAULTS[name] is None and name != "region"
            else (array(OBJECT) if DEFAULTS[name] is not None else nullable(TEXT))
        )
    parts = {"retry": _RETRY, "misfire": _MISFIRE, "dst": _DST}
    schema = shape(parts[name]) if name in parts else _JOB_FIELDS[name]
    return nullable(schema) if name in ("timeout", "task") or DEFAULTS[name] is None else schema


def _input_fields(*without: str) -> dict[str, Schema]:
    return {name: _input_field(name) for name in DEFAULTS if name not in without}


_LAST_RUN = shape({"id": ID, "status": words(*RUN_STATUSES), "finished_at": nullable(TIME)})
_JOB = shape(
    {
        "id": ID,
        "kind": words(*KINDS),
        "status": words(*JOB_STATUSES),
        "reason": nullable(TEXT),
        **{name: output_field(name) for name in DEFAULTS},
        "next_run_at": nullable(TIME),
        "last_run": nullable(_LAST_RUN),
        "version": COUNT,
        "created_at": TIME,
        "updated_at": TIME,
        "created_by": nullable(TEXT),
    },
    {"warnings": array(TEXT)},
)
_ERROR = shape({"type": nullable(TEXT), "message": nullable(TEXT), "traceback": nullable(TEXT)})
_ATTEMPT = shape(
    {
        "number": COUNT,
        "worker": nullable(TEXT),
        "started_at": nullable(TIME),
        "finished_at": nullable(TIME),
        "outcome": nullable(words(*(outcome.value for outcome in Outcome))),
        "error": nullable(OBJECT),
    }
)
_RUN = shape(
    {
        "id": ID,
        "job_id": ID,
        "task": TEXT,
        "queue": TEXT,
        "priority": COUNT,
        "status": words(*RUN_STATUSES),
        "reason": nullable(TEXT),
        "origin": words("submit", "schedule", "trigger", "retry", "replay", "backfill"),
        "replaces": nullable(ID),
        "scheduled_at": TIME,
        "ready_at": TIME,
        "started_at": nullable(TIME),
        "finished_at": nullable(TIME),
        "retry_at": nullable(TIME),
        "lateness_ms": MILLISECONDS,
        "duration_ms": MILLISECONDS,
        "attempt": COUNT,
        "max_attempts": COUNT,
        "fence": COUNT,
        "worker": nullable(TEXT),
        "cancel_requested_at": nullable(TIME),
        "result": {"description": "What the handler returned"},
        "error": nullable(ref("RunError")),
        "progress": {"description": "What the handler said of its progress"},
        "catch_up": FLAG,
        "attempts": array(ref("Attempt")),
        "created_at": TIME,
    },
    {"payload": PAYLOAD, "count": COUNT},
)
_OCCURRENCE = shape({"at": TIME, "local": TIME, "timezone": TEXT, "fires": FLAG, "marks": array(TEXT)})
_QUEUE = shape(
    {"name": TEXT, "paused": FLAG, "queued": COUNT, "running": COUNT, "held": COUNT, "limits": nullable(OBJECT)}
)
_WORKER = shape(
    {
        "id": ID,
        "host": TEXT,
        "pid": COUNT,
        "queues": array(TEXT),
        "slots": COUNT,
        "running": COUNT,
        "started_at": TIME,
        "beat_at": TIME,
        "draining": FLAG,
        "version": TEXT,
    }
)
_PREVIEW_WITHOUT = tuple(
    name
    for name in DEFAULTS
    if name
    not in ("at", "delay", "cron", "dialect", "every_nth", "timezone", "every", "rrule", "dst", "calendar",
            "start_at", "end_at", "max_runs", "jitter", "spread")
)  # fmt: skip
_PROBLEM = shape(
    {
        "type": TEXT,
        "title": TEXT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": TEXT,
        "errors": array(shape({"pointer": TEXT, "detail": TEXT})),
        "request_id": TEXT,
    },
    {"id": {**TEXT, "description": "The job that holds the key"}, "key": TEXT},
)


def page(item: str) -> Schema:
    return shape({"items": array(ref(item)), "next": nullable(TEXT)})


COMPONENTS: dict[str, Schema] = {
    "JobInput": closed(_input_fields(), "task"),
    "JobByKeyInput": closed(_input_fields(), "task"),
    "JobChanges": closed(_input_fields()),
    "JobBatch": array(ref("JobInput"), description=f"At most {BATCH_JOBS_MAX} jobs"),
    "Job": _JOB,
    "JobPage": page("Job"),
    "BatchAnswer": shape({"items": array(shape({"id": ID}))}, {"warnings": array(TEXT)}),
    "ResumeInput": closed({"catch_up": words("once", "all")}),
    "Occurrence": _OCCURRENCE,
    "Occurrences": shape({"items": array(ref("Occurrence")), "count": COUNT}),
    "PreviewInput": closed(
        {
            **_input_fields(*_PREVIEW_WITHOUT),
            "count": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX},
            "from": nullable(TIME),
            "compare_with": nullable(ID),
        }
    ),
    "Preview": shape(
        {"items": array(ref("Occurrence")), "count": COUNT},
        {"adds": array(ref("Occurrence")), "drops": array(ref("Occurrence"))},
    ),
    "Attempt": _ATTEMPT,
    "RunError": _ERROR,
    "Run": _RUN,
    "RunPage": page("Run"),
    "RetryInput": closed({"timeout": nullable(DURATION)}),
    "ResolveInput": closed(
        {
            "as": words("completed", "failed", "retry"),
            "note": nullable({"type": "string", "maxLength": DESCRIPTION_MAX}),
        },
        "as",
    ),
    "ReplayInput": closed({"payload": PAYLOAD}),
    "LogLine": shape(
        {"number": COUNT, "at": TIME, "level": TEXT, "message": TEXT, "attempt": COUNT}, {"fields": OBJECT}
    ),
    "LogPage": page("LogLine"),
    "Queue": _QUEUE,
    "QueuePage": page("Queue"),
    "QueueInput": closed({"concurrency": {"type": "null"}, "rate": {"type": "null"}}),
    "Purged": shape({"name": TEXT, "purged": COUNT}),
    "Worker": _WORKER,
    "WorkerPage": page("Worker"),
    "Scheduler": shape({"id": ID, "host": TEXT, "beat_at": TIME}),
    "SchedulerPage": page("Scheduler"),
    "Stats": shape(
        {
            "by_status": {"type": "object", "additionalProperties": COUNT},
            "queues": array(ref("Queue")),
            "workers": COUNT,
            "schedulers": COUNT,
            "oldest_ready_at": nullable(TIME),
            "next_fire_at": nullable(TIME),
            "dead_letters": COUNT,
        }
    ),
    "Health": shape({"status": words("ok")}),
    "Problem": _PROBLEM,
}
