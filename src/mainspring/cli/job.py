"""`mainspring job`: submit, read and change jobs."""

from __future__ import annotations

import json

import click

from mainspring.cli.explaining import print_explanation
from mainspring.cli.job_fields import field_options, job_document
from mainspring.cli.job_past import backfill, difference, print_difference, tell_difference, touches_schedule, versions
from mainspring.cli.output import note, print_item, print_items
from mainspring.cli.session import Session, client_command, given, list_options
from mainspring.cli.waiting import finished_run, print_ended

_COLUMNS = ("id", "task", "name", "kind", "status", "queue", "next_run_at", "created_at")


@click.group
def job() -> None:
    """Submit, read and change jobs."""


@job.command
@click.argument("task")
@field_options
@click.option("--strict-tasks", is_flag=True, help="Refuse a task that no worker has registered.")
@click.option("--idempotency-key", help="The same key and body again: the same answer, nothing new.")
@click.option("--wait", is_flag=True, help="Wait for the end, print the run, and exit with 1 if it failed.")
@click.option("--wait-timeout", type=float, metavar="SECONDS", help="Give up waiting after this time.")
@client_command
def submit(
    session: Session,
    /,
    task: str,
    strict_tasks: bool,  # noqa: FBT001 - click hands options over by name
    idempotency_key: str | None,
    wait: bool,  # noqa: FBT001
    wait_timeout: float | None,
    **fields: object,
) -> int:
    """Submit a job that runs TASK: now, or when --at, --delay, --cron or --every say."""
    document = {"task": task, **job_document(fields)}
    if wait and ({"cron", "every", "rrule"} & document.keys()):
        raise click.UsageError("--wait waits for one run; a job with --cron, --every or --rrule has many.")
    stored = session.run(
        lambda client: client.create_job(document, strict_tasks=strict_tasks, idempotency_key=idempotency_key)
    )
    _warn(stored)
    if not wait:
        print_item(stored, session.form)
        return 0
    identity = str(stored["id"])
    return print_ended(session.run(lambda client: finished_run(client, identity, wait_timeout)), session.form)


@job.command("list")
@click.option("--status", help="One status, or several separated by commas.")
@click.option("--kind", type=click.Choice(["immediate", "delayed", "recurring"]))
@click.option("--task")
@click.option("--queue")
@click.option("--tag")
@click.option("--key")
@click.option("-q", "q", help="The beginning of a name, key or task.")
@click.option("--created-after", metavar="TIME")
@click.option("--created-before", metavar="TIME")
@click.option("--next-before", metavar="TIME")
@list_options
@client_command
def list_(session: Session, /, **filters: object) -> None:
    """Jobs, newest first; completed ones only of the last 24 hours, unless a filter asks for them."""
    answer = session.run(lambda client: client.list_jobs(**given(filters)))
    print_items(answer, _COLUMNS, session.form)


@job.command
@click.argument("id")
@client_command
def show(session: Session, /, id: str) -> None:  # noqa: A002 - click's argument is called what users call it
    """One job with all its fields."""
    print_item(session.run(lambda client: client.get_job(id)), session.form)


@job.command("next")
@click.argument("id")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True)
@client_command
def next_(session: Session, /, id: str, count: int) -> None:  # noqa: A002
    """When the job is due next."""
    answer = session.run(lambda client: client.next_occurrences(id, count))
    print_items(answer, ("at", "local", "timezone", "fires", "marks"), session.form)


@job.command
@click.argument("id")
@client_command
def pause(session: Session, /, id: str) -> None:  # noqa: A002
    """What falls due from now on is skipped, until it is resumed."""
    print_item(session.run(lambda client: client.pause_job(id)), session.form)


@job.command
@click.argument("id")
@click.option("--catch-up", type=click.Choice(["once", "all"]), help="Also run what fell due during the pause.")
@client_command
def resume(session: Session, /, id: str, catch_up: str | None) -> None:  # noqa: A002
    """End a pause."""
    body = {"catch_up": catch_up} if catch_up else None
    print_item(session.run(lambda client: client.resume_job(id, body)), session.form)


@job.command
@click.argument("id")
@client_command
def trigger(session: Session, /, id: str) -> None:  # noqa: A002
    """Run the job now, whatever its schedule says; prints the run."""
    print_item(session.run(lambda client: client.trigger_job(id)), session.form)


@job.command
@click.argument("id")
@client_command
def cancel(session: Session, /, id: str) -> None:  # noqa: A002
    """Cancel the job and its runs that have not ended; this is final."""
    print_item(session.run(lambda client: client.cancel_job(id)), session.form)


@job.command
@click.argument("id")
@client_command
def delete(session: Session, /, id: str) -> None:  # noqa: A002
    """Cancel the job and remove its definition; its runs stay readable."""
    print_item(session.run(lambda client: client.delete_job(id)), session.form)


@job.command
@click.argument("id")
@field_options
@click.option("--clear", multiple=True, metavar="FIELD", help="Set a field back to what it is without being given.")
@click.option("--if-match", metavar="VERSION", help="Only if the job still has this version.")
@click.option("--dry-run", is_flag=True, help="Only show what the schedule would add and drop.")
@client_command
def update(
    session: Session,
    /,
    id: str,  # noqa: A002
    clear: tuple[str, ...],
    if_match: str | None,
    dry_run: bool,  # noqa: FBT001
    **fields: object,
) -> None:
    """Change fields of a job that has not become a run; says what a new schedule adds and drops."""
    changes = {**job_document(fields), **dict.fromkeys(clear)}
    if not changes:
        raise click.UsageError("nothing to change; give at least one field, such as --cron or --priority.")
    if dry_run or touches_schedule(changes):
        compared = session.run(lambda client: difference(client, id, changes))
        if dry_run:
            print_difference(compared, session.form)
            return
        tell_difference(compared)
    print_item(session.run(lambda client: client.patch_job(id, changes, if_match=if_match)), session.form)


@job.command
@click.argument("id")
@list_options
@client_command
def runs(session: Session, /, id: str, limit: int, cursor: str | None) -> None:  # noqa: A002
    """The runs of a job and its skipped occurrences, newest first."""
    answer = session.run(lambda client: client.job_runs(id, limit=limit, cursor=cursor))
    print_items(answer, ("id", "status", "reason", "scheduled_at", "duration_ms", "attempt"), session.form)


job.add_command(backfill)
job.add_command(versions)


@job.command("skip-next")
@click.argument("id")
@client_command
def skip_next(session: Session, /, id: str) -> None:  # noqa: A002
    """Leave out the next occurrence; it is recorded as skipped."""
    print_item(session.run(lambda client: client.skip_next(id)), session.form)


@job.command
@click.argument("id")
@click.option("--at", metavar="TIME", help="Ask about this instant.")
@client_command
def explain(session: Session, /, id: str, at: str | None) -> None:  # noqa: A002
    """Why the job does not run, or what became or becomes of an instant."""
    print_explanation(session.run(lambda client: client.explain_job(id, at)), session.form)


def _warn(stored: dict[str, object]) -> None:
    warnings = stored.get("warnings")
    for warning in warnings if isinstance(warnings, list) else []:
        note(f"warning: {warning if isinstance(warning, str) else json.dumps(warning)}")
