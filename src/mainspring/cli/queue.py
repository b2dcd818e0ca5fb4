"""`mainspring queue`: pause, resume and limit queues."""

from __future__ import annotations

import click

from mainspring.cli.output import print_item, print_items
from mainspring.cli.session import Session, client_command


@click.group
def queue() -> None:
    """Pause, resume and purge queues."""


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
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_command
def purge(session: Session, /, name: str, yes: bool) -> None:  # noqa: FBT001
    """Cancel everything that is queued, held or retrying in the queue."""
    if not yes:
        click.confirm(f"Cancel everything that waits in queue {name!r}?", abort=True, err=True)
    print_item(session.run(lambda client: client.purge_queue(name)), session.form)
