"""`mainspring verify`: proves from a store that its promises hold there."""

from __future__ import annotations

import click

from mainspring import config
from mainspring.cli.output import print_item, print_items


@click.command
@click.option("--store", metavar="URL", help="The store to look at (MAINSPRING_STORE).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def verify(store: str | None, as_json: bool) -> int:  # noqa: FBT001 - click hands options over by name
    """Look whether every occurrence has its record, every running run its worker; exit with 1 if not. Only reads."""
    import asyncio

    found = asyncio.run(_look(config.load(flags={"store": store})))
    findings = found["findings"]
    assert isinstance(findings, list)
    if as_json:
        print_item(found, "json")
        return 1 if findings else 0
    checked = found["checked"]
    assert isinstance(checked, dict)
    print("looked at " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in checked.items()))
    if not findings:
        print("every promise holds")
        return 0
    print_items({"items": findings}, ("rule", "id", "detail"), "table")
    return 1


async def _look(settings: config.Settings) -> dict[str, object]:
    from mainspring.app.clients import connect_store

    client = await connect_store(settings)
    try:
        return await client.verify(history_days=settings.history_days)
    finally:
        await client.close()
