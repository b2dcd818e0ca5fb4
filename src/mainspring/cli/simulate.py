"""`mainspring simulate`: a schedule played through in advance, outages included."""

from __future__ import annotations

import time

import click

from mainspring.cli.job_fields import Json, JsonOrText
from mainspring.cli.output import print_item

_DAY = 86_400_000_000


@click.command
@click.option("--cron", multiple=True, metavar="EXPR", help="When it fires; several times for several expressions.")
@click.option("--every", metavar="SPAN", help='Such as "5m".')
@click.option("--rrule", metavar="RULE")
@click.option("--timezone", default="UTC", show_default=True)
@click.option("--dst", type=Json(), help='At clock changes, such as \'{"gap": "skip"}\'.')
@click.option("--dates-off", "calendar", type=Json(), help="A calendar as a JSON object; @file reads it.")
@click.option("--roll", type=click.Choice(["skip", "next", "previous", "nearest"]), help="Of --dates-off.")
@click.option(
    "--misfire", type=JsonOrText(), default="once", show_default=True, help="skip, once, all or a JSON object."
)
@click.option("--from", "start", metavar="TIME", help="Default: now.")
@click.option("--days", type=click.FloatRange(min=0, max=36_600, min_open=True), default=365, show_default=True)
@click.option(
    "--outage", "outages", multiple=True, metavar="FROM/TO", help="Nobody fires meanwhile; several, in order."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def simulate(as_json: bool, **options: object) -> None:  # noqa: FBT001 - click hands options over by name
    """Play a schedule through: what would run, be caught up, be skipped and why. Needs no store."""
    told = _told(options)
    if as_json:
        print_item(told, "json")
        return
    skipped = told["skipped"]
    assert isinstance(skipped, dict)
    reasons = ", ".join(f"{count} for {reason}" for reason, count in skipped.items())
    print(f"{told['from']} to {told['to']}: {told['expected']} occurrences")
    print(f"{told['ran']} run in time, {told['caught_up']} are caught up, {sum(skipped.values())} are skipped", end="")
    print(f" ({reasons})" if reasons else "")
    outages = told["outages"]
    for outage in outages if isinstance(outages, list) else []:
        print(f"after the outage to {outage['to']}: {len(outage['runs'])} run, {outage['skipped']} skipped")


def _told(options: dict[str, object]) -> dict[str, object]:
    from mainspring.core import firing
    from mainspring.core.calendar_read import read_calendar
    from mainspring.core.occurrences import NO_CALENDARS
    from mainspring.core.rehearsal import rehearse
    from mainspring.core.schedule import read_schedule
    from mainspring.core.times import read_instant, utc_text

    calendar = options["calendar"]
    calendars = {"off": read_calendar("off", calendar)} if isinstance(calendar, dict) else NO_CALENDARS
    schedule = read_schedule(_fields(options))
    if not schedule.recurring:
        raise click.UsageError("say when: give --cron, --every or --rrule.")
    start = time.time_ns() // 1000 if options["start"] is None else read_instant(options["start"], "/from")
    days = options["days"]
    assert isinstance(days, int | float)
    end = start + round(days * _DAY)
    outages = [_outage(text) for text in _texts(options["outages"])]
    misfire = firing.misfire_of(_misfire(options["misfire"]))
    played = rehearse(schedule, start, end, anchor=start, outages=outages, misfire=misfire, calendars=calendars)
    return {
        "from": utc_text(start),
        "to": utc_text(end),
        "expected": played.expected,
        "ran": played.ran,
        "caught_up": played.caught_up,
        "skipped": dict(played.skipped),
        "outages": [
            {
                "to": utc_text(over),
                "runs": [utc_text(each.scheduled_at) for each in verdicts if each.action == "run"],
                "skipped": sum(each.count for each in verdicts if each.action == "skip"),
            }
            for (_, over), verdicts in zip(outages, played.outages, strict=True)
        ],
    }


def _fields(options: dict[str, object]) -> dict[str, object]:
    cron = _texts(options["cron"])
    fields: dict[str, object] = {name: options[name] for name in ("every", "rrule", "timezone", "dst")}
    fields["cron"] = None if not cron else cron[0] if len(cron) == 1 else list(cron)
    if options["calendar"] is not None:
        fields["calendar"] = {"name": "off", "roll": options["roll"] or "skip"}
    return fields


def _misfire(given: object) -> str:
    import json

    return json.dumps({"misfire": given})


def _outage(text: str) -> tuple[int, int]:
    from mainspring.core.times import read_instant

    begin, slash, over = text.partition("/")
    if not slash:
        raise click.UsageError(
            f"--outage {text!r} must say from when to when: 2026-12-01T00:00:00Z/2026-12-02T00:00:00Z"
        )
    return read_instant(begin, "/outage"), read_instant(over, "/outage")


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, tuple) else ()
