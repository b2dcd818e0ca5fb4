"""The command `mainspring`: finds the command asked for, and turns errors into words and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from mainspring import __version__
from mainspring.cli.failures import exit_code_of, tell

# Each command lives in a file of its own and is imported when it is asked for: `--help` and `version` stay fast.
_COMMANDS = {
    "api": "roles:api",
    "bench": "bench:bench",
    "calendar": "calendar:calendar",
    "config": "config:config",
    "cron": "cron:cron",
    "dead": "dead:dead",
    "job": "job:job",
    "migrate": "migrate:migrate",
    "openapi": "openapi:openapi",
    "plan": "plan:plan",
    "queue": "queue:queue",
    "run": "run:run",
    "scheduler": "roles:scheduler",
    "simulate": "simulate:simulate",
    "up": "roles:up",
    "verify": "verify:verify",
    "version": "version:version",
    "worker": "worker:worker",
}
_ABOUT = {
    "api": "Serve the HTTP API.",
    "bench": "Measure throughput and latency on a store.",
    "calendar": "Days off that schedules share by name.",
    "config": "Show the settings that hold here.",
    "cron": "Explain a cron expression.",
    "dead": "Look after runs that failed for good.",
    "job": "Submit, read and change jobs.",
    "migrate": "Bring the schema of a store up to date.",
    "openapi": "Print the OpenAPI document.",
    "plan": "Compare declared schedules with those stored.",
    "simulate": "Play a schedule through, outages included.",
    "queue": "Pause, resume and purge queues.",
    "run": "Read, retry and cancel runs.",
    "scheduler": "Fire what is due and look after workers.",
    "up": "Run everything in one go: API, scheduler and workers.",
    "verify": "Look whether a store keeps its promises.",
    "version": "Print the version.",
    "worker": "Carry out runs; list and drain workers.",
}
_HIDDEN = {"worker-process": "worker_process:worker_process"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        home = _COMMANDS.get(cmd_name) or _HIDDEN.get(cmd_name)
        if home is None:
            return None
        module, _, name = home.partition(":")
        command = getattr(import_module(f"mainspring.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_ABOUT.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--server", metavar="URL", help="The server of client commands (MAINSPRING_SERVER).")
@click.option("--store", metavar="URL", help="The store (MAINSPRING_STORE).")
@click.version_option(__version__, prog_name="mainspring", message="%(prog)s %(version)s")
@click.option("-o", "--output", "form", type=click.Choice(["table", "json", "jsonl"]), help="How to print.")
def mainspring(server: str | None, store: str | None, form: str | None) -> None:
    """Every job on time, once; and where that did not happen, a record that says why."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 ok, 1 the job failed, 2 usage, 3 not found, 4 conflict, 5 unreachable, 6 not allowed."""
    try:
        code = mainspring.main(arguments, prog_name="mainspring", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read the output has seen enough (`| head`).
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        known = exit_code_of(error)
        if known is None:
            raise
        tell(error)
        sys.exit(known)
    sys.exit(code if isinstance(code, int) else 0)
