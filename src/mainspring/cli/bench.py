from __future__ import annotations

import json
from typing import TypedDict, Unpack

import click

from mainspring import config
from mainspring.cli.output import print_item
from mainspring.cli.session import before_the_command


class _Sizes(TypedDict):
    """What a workload can be told of its size, as `run` takes it."""

    runs: int | None
    seconds: float | None
    passes: int
    concurrency: int | None
    processes: int | None
    stored: int | None


@click.command
@click.argument("workload", type=click.Choice(["flood", "producer", "pickup", "punctual", "herd", "backlog"]))
@click.option("--store", metavar="URL", help="The store; it gets a schema of its own, which is removed again.")
@click.option("--runs", type=click.IntRange(min=1), metavar="N", help="How many runs.")
@click.option("--seconds", type=float, metavar="S", help="For how long, where the workload goes by time.")
@click.option("--stored", type=click.IntRange(min=0), metavar="M", help="How many jobs whose time is far lie beside.")
@click.option("--passes", type=click.IntRange(min=1), default=1, help="Repeat it; the median pass answers.")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Runs at once in a worker.")
@click.option("--processes", type=click.IntRange(min=1), metavar="N", help="Worker processes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def bench(
    workload: str,
    store: str | None,
    as_json: bool,  # noqa: FBT001 - click hands options over by name
    **sizes: Unpack[_Sizes],
) -> None:
    """Measure a workload side by side with the bare SQL that does the same writes."""
    from mainspring.bench import run

    settings = config.load(flags={"store": store or before_the_command("store")})
    result = run(workload, store=settings.store, **sizes)
    if as_json:
        print(json.dumps(result))
    else:
        print_item(result, "table")
