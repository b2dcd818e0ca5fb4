"""`mainspring migrate`: the schema of a store."""

from __future__ import annotations

import json

import click

from mainspring import config
from mainspring.cli.output import note
from mainspring.cli.session import before_the_command

_STORE = click.option("--store", metavar="URL", help="The store; default: as for every command.")


@click.group(invoke_without_command=True)
@_STORE
@click.pass_context
def migrate(ctx: click.Context, store: str | None) -> None:
    """Bring the schema of a store up to date (`up`, also without a word), show its state, or print its SQL."""
    ctx.obj = store
    if ctx.invoked_subcommand is None:
        ctx.invoke(up, store=store)


@migrate.command
@_STORE
@click.pass_context
def up(ctx: click.Context, store: str | None) -> None:
    """Apply what is missing; any number of programs may try at once."""
    from mainspring.app.schema import apply_missing

    applied = apply_missing(_settings(ctx, store))
    for name in applied:
        print(f"applied {name}")
    if not applied:
        note("the schema is up to date")


@migrate.command
@_STORE
@click.option("-o", "--output", "form", type=click.Choice(["table", "json"]), default="table")
@click.pass_context
def status(ctx: click.Context, store: str | None, form: str) -> None:
    """Each step and whether it is applied."""
    from mainspring.app.schema import steps

    found = steps(_settings(ctx, store))
    if form == "json":
        print(json.dumps([{"name": name, "applied": applied} for name, applied in found], indent=2))
        return
    for name, applied in found:
        print(f"{'applied' if applied else 'missing'}  {name}")


@migrate.command
@_STORE
@click.pass_context
def sql(ctx: click.Context, store: str | None) -> None:
    """Print all steps as SQL, for a person to read or run."""
    from mainspring.app.schema import script

    print(script(_settings(ctx, store)))


def _settings(ctx: click.Context, store: str | None) -> config.Settings:
    named = store or (ctx.parent.obj if ctx.parent else None) or before_the_command("store")
    return config.load(flags={"store": named})
