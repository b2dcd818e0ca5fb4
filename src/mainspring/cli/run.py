"""`mainspring run`: read, retry and cancel runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mainspring.cli.explaining import print_explanation
from mainspring.cli.output import print_item, print_items, print_lines
from mainspring.cli.session import Session, client_command, given, list_options

if TYPE_CHECKING:
    from mainspring.app.clients import AnyClient

COLUMNS = ("id", "task", "queue", "status", "reason", "scheduled_at", "lateness_ms", "duration_ms", "attempt", "worker")


@click.group
def run() -> None:
    """Read, retry and cancel runs."""


@run.command("list")
@click.option("--status", help="One status, or several separated by commas.")
@click.option("--job", "job_id", help="Only runs of this job.")
@click.option("--task")
@click.option("--queue")
@click.option("--worker")
@click.option("--tag")
@click.option("--reason")
@click.option("--error", help="Part of the error's type or message.")
@click.option("--from", "from_", metavar="TIME", help="Scheduled at or after this time.")
@click.option("--to", metavar="TIME", help="Scheduled before this time.")
@list_options
@client_command
def list_(session: Session, /, from_: str | None, **filters: object) -> None:
    """Runs and skipped occurrences, newest first."""
    chosen = given({**filters, "from": from_})
    print_items(session.run(lambda client: client.list_runs(**chosen)), COLUMNS, session.form)


@run.command
@click.argument("id")
@client_command
def show(session: Session, /, id: str) -> None:  # noqa: A002 - click's argument is called what users call it
    """One run with its attempts, result and error."""
    print_item(session.run(lambda client: client.get_run(id)), session.form)


@run.command
@click.argument("id")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option("--after", type=int, default=0, help="Only lines after this number.")
@click.option("--limit", type=click.IntRange(1, 1000), default=1000, show_default=True)
@client_command
def logs(session: Session, /, id: str, follow: bool, after: int, limit: int) -> None:  # noqa: A002, FBT001
    """What the handler logged."""
    if follow:
        session.run(lambda client: _follow(client, id, session.form))
        return
    answer = session.run(lambda client: client.run_logs(id, after=after, limit=limit))
    if session.form == "table":
        for line in _lines(answer):
            _print_line(line)
    else:
        print_items(answer, (), session.form)


@run.command
@click.argument("id")
@click.option("--timeout", help="A longer timeout for the new attempt.")
@client_command
def retry(session: Session, /, id: str, timeout: str | None) -> None:  # noqa: A002
    """A retrying run goes on now; an ended one gets a new run, which is printed."""
    body: dict[str, object] | None = {"timeout": timeout} if timeout else None
    print_item(session.run(lambda client: client.retry_run(id, body)), session.form)


@run.command
@click.argument("id")
@client_command
def cancel(session: Session, /, id: str) -> None:  # noqa: A002
    """Cancel the run; a running one ends when its handler stops."""
    print_item(session.run(lambda client: client.cancel_run(id)), session.form)


@run.command
@click.argument("id")
@click.option("--as", "as_", type=click.Choice(["completed", "failed", "retry"]), required=True)
@click.option("--note", help="Why; it is kept with the run.")
@client_command
def resolve(session: Session, /, id: str, as_: str, note: str | None) -> None:  # noqa: A002
    """Say what became of an unknown run."""
    body = given({"as": as_, "note": note})
    print_item(session.run(lambda client: client.resolve_run(id, body)), session.form)


@run.command
@click.argument("id")
@client_command
def explain(session: Session, /, id: str) -> None:  # noqa: A002
    """Why the run does not go on: its chain of gates."""
    print_explanation(session.run(lambda client: client.explain_run(id)), session.form)


async def _follow(client: AnyClient, identity: str, form: str) -> None:
    async for line in client.follow_logs(identity):
        if form == "table":
            _print_line(line)
        else:
            print_lines([line])


def _lines(answer: Mapping[str, object]) -> list[Mapping[str, object]]:
    items = answer.get("items")
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _print_line(line: Mapping[str, object]) -> None:
    print(f"{line.get('at')}  {str(line.get('level')).upper():<7}  {line.get('message')}", flush=True)
