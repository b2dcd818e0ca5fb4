"""`mainspring queue`: pause, resume and limit queues."""

from __future__ import annotations

import re

import click

from mainspring.cli.output import print_item, print_items
from mainspring.cli.session import Session, client_command


@click.group
def queue() -> None:
    """Pause, resume and limit queues."""


@queue.command("list")
@client_command
def list_(session: Session, /) -> None:
    """Every queue with what is queued, running and held in it."""
    answer = session.run(lambda client: client.list_queues())
    print_items(answer, ("name", "paused", "queued", "running", "held", "limits"), session.form)


@queue.command
@click.argument("name")
@client_command
def pause(session: Session, /, name: str) -> None:
    """Nothing more starts from the queue; what runs goes on."""
    print_item(session.run(lambda client: client.pause_queue(name)), session.form)


@queue.command
@click.argument("name")
@client_command
def resume(session: Session, /, name: str) -> None:
    """End a pause."""
    print_item(session.run(lambda client: client.resume_queue(name)), session.form)


@queue.command
@click.argument("name")
@click.option("--concurrency", type=click.IntRange(min=1), help="How many of its runs may go on at once.")
@click.option("--rate", metavar="COUNT/PER", help='How many may start in any interval, such as "10/1m".')
@click.option("--clear", is_flag=True, help="Take the limits away.")
@client_command
def limit(session: Session, /, name: str, concurrency: int | None, rate: str | None, clear: bool) -> None:  # noqa: FBT001
    """Set the limits of a queue; what is left out is not limited."""
    if clear == bool(concurrency or rate):
        raise click.UsageError("give --concurrency or --rate or both, or --clear alone.")
    body: dict[str, object] = {"concurrency": concurrency, "rate": _rate(rate)}
    print_item(session.run(lambda client: client.set_queue(name, body)), session.form)


@queue.command
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_command
def purge(session: Session, /, name: str, yes: bool) -> None:  # noqa: FBT001
    """Cancel everything that is queued, held or retrying in the queue."""
    if not yes:
        click.confirm(f"Cancel everything that waits in queue {name!r}?", abort=True, err=True)
    print_item(session.run(lambda client: client.purge_queue(name)), session.form)


def _rate(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)/(.+)", text)
    if match is None:
        raise click.BadParameter(f'{text!r} is no rate; write COUNT/PER, such as "10/1m".', param_hint="--rate")
    return {"count": int(match[1]), "per": match[2] if match[2][0].isdigit() else f"1{match[2]}"}
