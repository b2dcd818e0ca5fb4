"""`mainspring plan`: what a start of an application would change about its declared schedules."""

from __future__ import annotations

import click

from mainspring import config
from mainspring.cli.output import print_items


@click.command
@click.argument("application", metavar="MODULE:APP")
@click.option("--store", metavar="URL", help="The store to compare with (MAINSPRING_STORE).")
@click.option("-o", "--output", "form", type=click.Choice(["table", "json", "jsonl"]), default="table")
def plan(application: str, store: str | None, form: str) -> None:
    """Compare the schedules that MODULE:APP declares with those stored; changes nothing."""
    import asyncio

    items = asyncio.run(_compare(application, config.load(flags={"store": store})))
    print_items({"items": items, "next": None}, ("change", "key", "fields", "job_id"), form)


async def _compare(application: str, settings: config.Settings) -> list[dict[str, object]]:
    from mainspring.app.clients import connect_store
    from mainspring.app.locate import locate
    from mainspring.app.removed import planned

    app = locate(application)
    client = await connect_store(settings)
    try:
        found = await planned(client, app.schedules, app.modules)
    finally:
        await client.close()
    return [{**each._asdict(), "fields": list(each.fields)} for each in found]
