"""`mainspring job backfill`, `job versions`, and what an update would change about the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mainspring.cli.output import note, print_item, print_items
from mainspring.cli.session import Session, client_command, given

if TYPE_CHECKING:
    from mainspring.app.clients import AnyClient

_WHEN = ("at", "delay", "cron", "every", "rrule")
_SCHEDULE = (
    *_WHEN, "dialect", "every_nth", "timezone", "dst", "calendar", "start_at", "end_at", "max_runs", "jitter", "spread",
)  # fmt: skip
_COLUMNS = ("at", "local", "timezone", "fires", "marks")


@click.command
@click.argument("id")
@click.option("--from", "start", required=True, metavar="TIME", help="The first instant that may be filled.")
@click.option("--to", "end", required=True, metavar="TIME", help="Not included.")
@click.option("--limit", type=click.IntRange(1, 1000), help="At most so many runs; default: 100.")
@click.option("--order", type=click.Choice(["oldest", "newest"]), help="Which come first; default: oldest.")
@click.option("--overlap", type=click.Choice(["skip", "queue_one", "queue_all", "cancel", "allow"]))
@click.option("--rerun", is_flag=True, default=None, help="Also instants that have a run.")
@click.option("--dry-run", is_flag=True, default=None, help="Only list the instants.")
@client_command
def backfill(session: Session, /, id: str, start: str, end: str, **options: object) -> None:  # noqa: A002
    """Run instants that have gone by, each with the definition that was in force then."""
    body = {"from": start, "to": end, **given(options)}
    answer = session.run(lambda client: client.backfill_job(id, body))
    print_items(answer, _COLUMNS, session.form)
    if answer.get("more"):
        note("There is more: go on with another backfill of the same range.")


@click.command
@click.argument("id")
@client_command
def versions(session: Session, /, id: str) -> None:  # noqa: A002
    """The definitions that a job has had, newest first."""
    answer = session.run(lambda client: client.job_versions(id))
    print_items(answer, ("version", "since", "until", "cron", "every", "rrule", "queue", "priority"), session.form)


def touches_schedule(changes: Mapping[str, object]) -> bool:
    return any(name in changes for name in _SCHEDULE)


async def difference(client: AnyClient, job_id: str, changes: Mapping[str, object]) -> Mapping[str, object]:
    """The coming occurrences after the change, with what it adds and drops."""
    job = await client.get_job(job_id)
    kept = {name: job[name] for name in _SCHEDULE if job.get(name) is not None}
    if any(changes.get(name) is not None for name in _WHEN):
        kept = {name: value for name, value in kept.items() if name not in _WHEN}
    asked = {**kept, **{name: changes[name] for name in _SCHEDULE if name in changes}, "compare_with": job_id}
    return await client.preview(asked)


def tell_difference(compared: Mapping[str, object]) -> None:
    """For people, on standard error: the answer itself stays clean."""
    for word in ("adds", "drops"):
        found = compared.get(word)
        times = [str(each["local"]) for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        more = f" and {len(times) - 5} more" if len(times) > 5 else ""
        note(f"{word}: {', '.join(times[:5]) or 'nothing'}{more}")


def print_difference(compared: Mapping[str, object], form: str) -> None:
    if form == "table":
        print_items(compared, _COLUMNS, form)
        tell_difference(compared)
    else:
        print_item(compared, form)
