"""`mainspring calendar`: days off that schedules share by name."""

from __future__ import annotations

from pathlib import Path

import click

from mainspring.cli.job_fields import Json
from mainspring.cli.output import print_item, print_items
from mainspring.cli.session import Session, client_command


@click.group
def calendar() -> None:
    """Days off that schedules share by name."""


@calendar.command("list")
@client_command
def list_(session: Session, /) -> None:
    """Every calendar with its version."""
    answer = session.run(lambda client: client.list_calendars())
    print_items(answer, ("name", "version", "days_off", "dates", "updated_at"), session.form)


@calendar.command
@click.argument("name")
@client_command
def show(session: Session, /, name: str) -> None:
    """One calendar as it was given."""
    print_item(session.run(lambda client: client.get_calendar(name)), session.form)


@calendar.command("set")
@click.argument("name")
@click.option("--date", "dates", multiple=True, metavar="DATE", help="A day off, such as 2026-12-25; several times.")
@click.option("--day-off", "days_off", multiple=True, metavar="DAY", help="A day of each week, such as sat.")
@click.option("--icalendar", metavar="FILE", type=click.Path(path_type=Path), help="A file whose events are days off.")
@click.option("--json", "document", type=Json(), help="The whole calendar as a JSON object; @file or - reads it.")
@click.option("--if-match", metavar="VERSION", help="Only if the calendar still has this version.")
@client_command
def set_(
    session: Session,
    /,
    name: str,
    dates: tuple[str, ...],
    days_off: tuple[str, ...],
    icalendar: Path | None,
    document: object,
    if_match: str | None,
) -> None:
    """Create a calendar, or replace it; schedules that use it are planned anew."""
    given: dict[str, object] = dict(document) if isinstance(document, dict) else {}
    if document is not None and not isinstance(document, dict):
        raise click.UsageError('--json takes an object, such as \'{"dates": ["2026-12-25"]}\'.')
    given |= {key: list(value) for key, value in (("dates", dates), ("days_off", days_off)) if value}
    if icalendar is not None:
        given["icalendar"] = _content(icalendar)
    if not given and document is None:
        raise click.UsageError("nothing is off; give --date, --day-off, --icalendar or --json.")
    print_item(session.run(lambda client: client.put_calendar(name, given, if_match=if_match)), session.form)


@calendar.command
@click.argument("name")
@click.option("--if-match", metavar="VERSION", help="Only if the calendar still has this version.")
@client_command
def delete(session: Session, /, name: str, if_match: str | None) -> None:
    """Remove a calendar that no job uses."""
    print_item(session.run(lambda client: client.delete_calendar(name, if_match=if_match)), session.form)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--icalendar: {path} cannot be read: {error}") from None
