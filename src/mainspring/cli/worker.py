"""`mainspring worker MODULE:APP` is a role; `mainspring worker list|drain` are client commands beside it."""

from __future__ import annotations

import click

from mainspring.cli.output import print_item, print_items
from mainspring.cli.roles import worker_role
from mainspring.cli.session import Session, client_command


class _RoleOrCommand(click.Group):
    """What is neither a subcommand nor a call for help are the arguments of the role."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [worker_role.name or "", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "MODULE:APP [OPTIONS]")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]…", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        worker_role.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=_RoleOrCommand)
def worker() -> None:
    """Carry out the runs of the tasks of an application; or list and drain workers."""


worker.add_command(worker_role)


@worker.command("list")
@client_command
def list_(session: Session, /) -> None:
    """The worker processes that live."""
    answer = session.run(lambda client: client.list_workers())
    columns = ("id", "host", "queues", "slots", "running", "started_at", "beat_at", "draining", "version")
    print_items(answer, columns, session.form)


@worker.command
@click.argument("id")
@client_command
def drain(session: Session, /, id: str) -> None:  # noqa: A002 - click's argument is called what users call it
    """The worker claims nothing more, finishes what it has and stops."""
    print_item(session.run(lambda client: client.drain_worker(id)), session.form)
