"""`mainspring up`, `api`, `scheduler` and, by way of `worker`, the role of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

from mainspring.cli.session import before_the_command

P = ParamSpec("P")
T = TypeVar("T")

_SETTINGS = (
    "store", "queue", "host", "port", "roles", "concurrency", "processes", "queues", "drain", "strict_tasks",
    "log_level", "log_format",
)  # fmt: skip


def _role_options(function: Callable[P, T]) -> Callable[P, T]:
    """Every role takes the flags of `up`."""
    for option in reversed(
        (
            click.argument("app", metavar="[MODULE:APP]", required=False),
            click.option("--store", metavar="URL", help="Where everything is kept; default: sqlite:///mainspring.db."),
            click.option("--queue", metavar="URL", help="The ready queue; default: the store itself."),
            click.option("--host", help="The address of the API; default: 127.0.0.1."),
            click.option("--port", type=int, help="The port of the API, 0 for a free one; default: 8321."),
            click.option("--roles", help="What runs here; default: api,scheduler,worker."),
            click.option("--concurrency", type=int, metavar="N", help="Runs at once in a worker process; default: 10."),
            click.option("--processes", type=int, metavar="N", help="Worker processes; default: 1."),
            click.option("--queues", metavar="A,B", help="Queues that the workers serve; default: all."),
            click.option("--drain", metavar="DURATION", help="How long runs may go on at a stop; default: 30s."),
            click.option("--strict-tasks", is_flag=True, default=None, help="Refuse jobs whose task no worker has."),
            click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"])),
            click.option("--log-format", type=click.Choice(["text", "json"])),
            click.option("--demo", is_flag=True, help="Bring sample tasks."),
            click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser."),
            click.option("--migrate", is_flag=True, help="Bring an older schema up to date first."),
            click.option("--reload", is_flag=True, help="Restart workers when code in this folder changes."),
        )
    ):
        function = option(function)
    return function


def _run(roles: tuple[str, ...] | None, options: dict[str, object]) -> int:
    from mainspring.app.programs import run_roles

    app = options["app"]
    return run_roles(
        app if isinstance(app, str) else None,
        {name: options[name] for name in _SETTINGS} | {"store": options["store"] or before_the_command("store")},
        roles,
        demo=bool(options["demo"]),
        migrate=bool(options["migrate"]),
        reload=bool(options["reload"]),
        open_browser=bool(options["open_browser"]),
    )


@click.command
@_role_options
def up(**options: object) -> int:
    """Run API, scheduler and workers, with everything in one place.

    Prints `ready http://…` when it answers. The first SIGTERM or Ctrl-C drains, the second one ends at once.
    """
    return _run(None, options)


@click.command
@_role_options
def api(**options: object) -> int:
    """Serve the HTTP API alone."""
    return _run(("api",), options)


@click.command
@_role_options
def scheduler(**options: object) -> int:
    """Fire what is due and look after workers."""
    return _run(("scheduler",), options)


@click.command("start", hidden=True)
@_role_options
def worker_role(**options: object) -> int:
    """Carry out the runs of the application's tasks."""
    return _run(("worker",), options)
