"""`mainspring cron`: what an expression means."""

from __future__ import annotations

import time

import click

from mainspring.cli.output import print_item, print_items


@click.group
def cron() -> None:
    """What a cron expression means."""


@cron.command
@click.argument("expression")
@click.option("--timezone", default="UTC", show_default=True, metavar="TZ", help="Such as Europe/Berlin.")
@click.option("--next", "count", type=click.IntRange(0, 1000), default=10, show_default=True, help="How many instants.")
@click.option("--from", "start", metavar="TIME", help="From this time on; default: now.")
@click.option("--dialect", type=click.Choice(["unix", "seconds"]), help="seconds: six fields, seconds first.")
@click.option("-o", "--output", "form", type=click.Choice(["table", "json", "jsonl"]), default="table")
def explain(expression: str, timezone: str, count: int, start: str | None, dialect: str | None, form: str) -> None:
    """Say in words when EXPR fires, and its coming instants; needs no store."""
    from mainspring.client.coming import END_OF_TIME, occurrences_json
    from mainspring.core.cron_words import explain as words_of
    from mainspring.core.occurrences import between
    from mainspring.core.schedule import read_schedule
    from mainspring.core.times import read_instant

    fields = {"cron": expression, "timezone": timezone, "dialect": dialect}
    schedule = read_schedule({name: value for name, value in fields.items() if value is not None})
    sentence = words_of(expression, dialect=dialect)
    begin = time.time_ns() // 1000 + 1 if start is None else read_instant(start, "/from")
    found = list(between(schedule, begin, END_OF_TIME, anchor=begin, limit=count))
    items = occurrences_json(found, schedule.zone)
    if form == "json":
        print_item({"expression": expression, "timezone": timezone, "explanation": sentence, "items": items}, form)
        return
    if form == "table":
        click.echo(f"{sentence} ({timezone})")
    if items:
        print_items({"items": items}, ("at", "local", "fires", "marks"), form)
