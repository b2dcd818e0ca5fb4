"""Options that every client command has, and the way from them to a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from mainspring import config

if TYPE_CHECKING:
    from mainspring.app.clients import AnyClient

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """Where a client command goes, and how it prints."""

    server: str | None
    store: str | None
    form: str

    def run(self, action: Callable[[AnyClient], Awaitable[T]]) -> T:
        """Opens a client, does the action with it and closes it again."""
        import asyncio

        return asyncio.run(self._with_client(action))

    async def _with_client(self, action: Callable[[AnyClient], Awaitable[T]]) -> T:
        from mainspring.app.clients import connect

        if self.server and self.store:
            raise click.UsageError("--server and --store name two places; give one of them.")
        settings = config.load(flags={"server": self.server, "store": self.store})
        client = await connect(settings)
        try:
            return await action(client)
        finally:
            await client.close()


FORMS = click.Choice(["table", "json", "jsonl"])


def client_command(function: Callable[Concatenate[Session, P], T]) -> Callable[P, T]:
    """Adds `--server`, `--store` and `--output` to a command; it gets a Session first."""
    import functools

    @click.option("--server", metavar="URL", help="Talk to this server (MAINSPRING_SERVER).")
    @click.option("--store", metavar="URL", help="Talk straight to this store (MAINSPRING_STORE).")
    @click.option("-o", "--output", "form", type=FORMS, help="How to print; default: table.")
    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> T:
        options = dict(kwargs)
        server, store, form = (options.pop(name) or before_the_command(name) for name in ("server", "store", "form"))
        session = Session(_text(server), _text(store), _text(form) or "table")
        return click.get_current_context().invoke(function, session, *args, **options)

    return command


def before_the_command(name: str) -> object:
    """What was given as in `mainspring --store URL job list`."""
    return click.get_current_context().find_root().params.get(name)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def list_options(function: Callable[P, T]) -> Callable[P, T]:
    """`--limit` and `--cursor` of a list."""
    function = click.option("--cursor", help="Go on where the last page ended.")(function)
    return click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)(function)


def given(options: dict[str, object]) -> dict[str, object]:
    """What was not left out."""
    return {name: value for name, value in options.items() if value is not None and value != ()}
