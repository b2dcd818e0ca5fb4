"""`mainspring dead`: runs that ended failed and wait for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from mainspring.cli.job_fields import Json
from mainspring.cli.output import note, print_item, print_items
from mainspring.cli.session import Session, client_command, given, list_options
from mainspring.core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from mainspring.app.clients import AnyClient

P = ParamSpec("P")
T = TypeVar("T")

Answer = dict[str, object]
_COLUMNS = ("id", "task", "queue", "finished_at", "attempt", "error.type", "error.message")
_PAGE = 1000


def _filters(function: Callable[P, T]) -> Callable[P, T]:
    for name, text in (
        ("--to", "Scheduled before this time."),
        ("--from", "Scheduled at or after this time."),
        ("--error", "Part of the error's type or message."),
        ("--tag", "Only runs with this tag."),
        ("--queue", "Only runs of this queue."),
        ("--task", "Only runs of this task."),
    ):
        function = click.option(name, help=text)(function)
    return function


@click.group
def dead() -> None:
    """Look after runs that failed for good."""


@dead.command("list")
@_filters
@list_options
@client_command
def list_(session: Session, /, **filters: object) -> None:
    """Dead letters, newest first."""
    chosen = given(filters)
    print_items(session.run(lambda client: client.list_dead_letters(**chosen)), _COLUMNS, session.form)


@dead.command
@click.argument("id")
@client_command
def show(session: Session, /, id: str) -> None:  # noqa: A002 - click's argument is called what users call it
    """One dead letter with its attempts and its error."""
    print_item(session.run(lambda client: client.get_run(id)), session.form)


@dead.command
@click.argument("ids", nargs=-1)
@_filters
@click.option("--payload", type=Json(), help="Run it with this payload instead.")
@click.option("--all", "everything", is_flag=True, help="Every dead letter there is.")
@click.option("--dry-run", is_flag=True, help="Only show which they are.")
@client_command
def replay(
    session: Session,
    /,
    ids: tuple[str, ...],
    payload: object,
    everything: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    **filters: object,
) -> None:
    """Run dead letters again, by ID or by filter; prints the new runs."""
    body: Answer | None = None if payload is None else {"payload": payload}
    chosen = _chosen(ids, filters, everything=everything)
    session.run(
        lambda client: _each(
            client, session.form, ids, chosen, lambda id_: client.replay_dead_letter(id_, body), dry_run=dry_run
        )
    )


@dead.command
@click.argument("ids", nargs=-1)
@_filters
@click.option("--all", "everything", is_flag=True, help="Every dead letter there is.")
@click.option("--dry-run", is_flag=True, help="Only show which they are.")
@client_command
def discard(
    session: Session,
    /,
    ids: tuple[str, ...],
    everything: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    **filters: object,
) -> None:
    """Let dead letters go, by ID or by filter; their runs stay in the history."""
    chosen = _chosen(ids, filters, everything=everything)
    session.run(lambda client: _each(client, session.form, ids, chosen, client.discard_dead_letter, dry_run=dry_run))


def _chosen(ids: tuple[str, ...], filters: dict[str, object], *, everything: bool) -> dict[str, object]:
    chosen = given(filters)
    if bool(ids) + bool(chosen) + everything != 1:
        raise click.UsageError("say which: one or more IDs, or a filter such as --task, or --all.")
    return chosen


async def _each(
    client: AnyClient,
    form: str,
    ids: tuple[str, ...],
    filters: dict[str, object],
    action: Callable[[str], Awaitable[Answer]],
    *,
    dry_run: bool,
) -> None:
    if dry_run:
        print_items({"items": await _letters(client, ids, filters), "next": None}, _COLUMNS, form)
        return
    if len(ids) == 1:
        print_item(await action(ids[0]), form)
        return
    done: list[Answer] = []
    for letter in await _letters(client, ids, filters):
        try:
            done.append(await action(str(letter["id"])))
        except (NotFound, Conflict) as error:
            # Somebody else took care of it meanwhile; the others still want to be done.
            note(f"{letter['id']}: {error}")
    print_items({"items": done, "next": None}, ("id", "task", "queue", "status", "replaces"), form)


async def _letters(client: AnyClient, ids: tuple[str, ...], filters: dict[str, object]) -> list[Answer]:
    if ids:
        return [await client.get_run(identity) for identity in ids]
    found: list[Answer] = []
    cursor: str | None = None
    while True:
        page = await client.list_dead_letters(**filters, limit=_PAGE, **({"cursor": cursor} if cursor else {}))
        items = page["items"]
        found += [dict(item) for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
        cursor = page["next"] if isinstance(page["next"], str) else None
        if cursor is None:
            return found
