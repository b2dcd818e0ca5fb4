"""`mainspring queue`: pause, resume and limit queues."""

from __future__ import annotations

import click

from mainspring.cli.output import print_item, print_items
from mainspring.cli.session import Session, client_command, given


@click.group
def queue() -> None:
    """Pause, resume, limit and purge queues."""


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


class Rate(click.ParamType[dict[str, object]]):
    """`10/1s`: ten starts in any second."""

    name = "COUNT/PER"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, object]:
        count, _, per = str(value).partition("/")
        if not count.strip().isdigit() or not per.strip():
            self.fail(f"{value!r} is no rate; write how many in how long, such as 10/1s or 600/1h", param, ctx)
        return {"count": int(count), "per": per.strip()}


@queue.command
@click.argument("name")
@click.option("--concurrency", type=click.IntRange(min=1), help="At most so many at a time.")
@click.option("--rate", type=Rate(), help="At most so many starts in any interval, such as 10/1s.")
@click.option("--clear", is_flag=True, help="Take all limits away.")
@client_command
def limit(session: Session, /, name: str, concurrency: int | None, rate: dict[str, object] | None, clear: bool) -> None:  # noqa: FBT001
    """Set the limits of a queue; what is left out has none afterwards."""
    limits = given({"concurrency": concurrency, "rate": rate})
    if bool(limits) == clear:
        raise click.UsageError("Say --concurrency or --rate, or --clear to take the limits away.")
    print_item(session.run(lambda client: client.set_queue(name, limits)), session.form)


@queue.command
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_command
def purge(session: Session, /, name: str, yes: bool) -> None:  # noqa: FBT001
    """Cancel everything that is queued, held or retrying in the queue."""
    if not yes:
        click.confirm(f"Cancel everything that waits in queue {name!r}?", abort=True, err=True)
    print_item(session.run(lambda client: client.purge_queue(name)), session.form)
