"""The fields of a job as options of the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

P = ParamSpec("P")
T = TypeVar("T")


class Json(click.ParamType[object]):
    """JSON in place, in a file (`@file`) or on standard input (`-`)."""

    name = "JSON"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(_content(value))
        except OSError as error:
            self.fail(f"cannot be read: {error}", param, ctx)
        except ValueError as error:
            self.fail(f'is no valid JSON: {error}; quote it for the shell, such as \'{{"to": "a@b.c"}}\'', param, ctx)


class JsonOrText(Json):
    """A word, or JSON where it begins like an object."""

    name = "TEXT|JSON"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if isinstance(value, str) and not value.lstrip().startswith(("{", "@")):
            return value
        return super().convert(value, param, ctx)


_FIELDS: tuple[tuple[str, click.ParamType[object] | None, str], ...] = (
    ("payload", Json(), "The task's arguments by name, as a JSON object; @file or - reads it."),
    ("at", None, "Run at this time, RFC 3339 with an offset."),
    ("delay", None, 'Run after this time, such as "90s" or "24h".'),
    ("cron", None, 'Run whenever this expression says, such as "0 9 * * *".'),
    ("dialect", None, "Of --cron: seconds for six fields, seconds first."),
    ("every-nth", click.IntRange(min=1), "Only every n-th instant of --cron."),
    ("rrule", None, 'Run by this recurrence rule, such as "FREQ=MONTHLY;BYDAY=-1FR".'),
    ("every", None, 'Run once each interval, such as "5m".'),
    ("timezone", None, "The zone of --cron and --rrule, such as Europe/Berlin."),
    ("calendar", JsonOrText(), "The calendar of days off: its name, or a JSON object with name and roll."),
    ("dst", Json(), 'At clock changes, such as \'{"gap": "skip"}\'.'),
    ("start-at", None, "Nothing is due before this time."),
    ("end-at", None, "Nothing is due from this time on."),
    ("max-runs", click.IntRange(min=1), "The job is finished after this many runs."),
    ("misfire", JsonOrText(), "What becomes of missed occurrences: skip, once, all, or a JSON object."),
    ("overlap", None, "While a run goes on: skip, queue_one, queue_all, cancel or allow."),
    ("name", None, "A name for people."),
    ("description", None, "A sentence for people."),
    ("key", None, "A name that only one live job can have."),
    ("queue", None, "The queue; default: default."),
    ("priority", click.IntRange(0, 100), "0 to 100, higher first; default: 50."),
    ("timeout", None, "How long an attempt may take; default: 1h."),
    ("cancel-grace", None, "How long a cancelled run may go on; default: 10s."),
    ("retry", Json(), "How failures are tried again, such as '{\"max_attempts\": 5}'."),
    ("on-lost", None, "When a worker is lost: retry, fail or hold."),
    ("lost-after", None, "How long silence is borne; default: the lease."),
    ("expires-in", None, "Skipped if not started by then."),
    ("jitter", None, "Spread the start over this time."),
    ("spread", None, "Start the job at an instant of its own within this time, always the same."),
    ("metadata", Json(), "Anything of yours, as a JSON object."),
)
_NULL_TIMEOUT = "none"


def field_options(function: Callable[P, T]) -> Callable[P, T]:
    """Adds the options; the command gets them as keyword arguments, None where left out."""
    function = click.option("--tag", "tags", multiple=True, help="A tag; may be given several times.")(function)
    for name, kind, text in reversed(_FIELDS):
        function = click.option(f"--{name}", type=kind, help=text)(function)
    return function


def job_document(fields: dict[str, object]) -> dict[str, object]:
    """The options as the JSON object of the API, without what was left out."""
    document = {name: value for name, value in fields.items() if value is not None and value != ()}
    if "tags" in document:
        document["tags"] = list(fields["tags"]) if isinstance(fields["tags"], tuple) else fields["tags"]
    if isinstance(document.get("misfire"), str):
        document["misfire"] = {"policy": document["misfire"]}
    if document.get("timeout") == _NULL_TIMEOUT:
        document["timeout"] = None
    return document


def _content(value: str) -> str:
    if value == "-":
        return sys.stdin.read()
    return Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value
