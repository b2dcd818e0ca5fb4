from __future__ import annotations

import json

import click

from mainspring import config as settings_of


@click.group
def config() -> None:
    """Show the settings that hold here."""


@config.command
@click.option("--origin", is_flag=True, help="Say for each value where it came from.")
@click.option("-o", "--output", "form", type=click.Choice(["table", "json", "jsonl"]), default="table")
def show(origin: bool, form: str) -> None:  # noqa: FBT001 - click hands options over by name
    """Each setting and its value; secrets are masked."""
    settings = settings_of.load()
    shown = settings.shown()
    rows = {name: {"value": _text(value), "origin": settings.origins[name]} for name, value in shown.items()}
    if form != "table":
        origins = {name: {"value": value, "origin": settings.origins[name]} for name, value in shown.items()}
        answer = origins if origin else shown
        print(json.dumps(answer, indent=2 if form == "json" else None))
        return
    names = max(len(name) for name in rows)
    values = max(len(row["value"]) for row in rows.values())
    for name, row in rows.items():
        line = f"{name:<{names}}  {row['value']:<{values if origin else 0}}"
        print(f"{line}  {row['origin']}" if origin else line)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return "" if value is None else str(value)
