"""Writes the parts of docs/ that are drawn from the code: `python tools/generate_docs.py`, or `--check` to compare only.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the text around it is written by hand.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import click

from mainspring import config
from mainspring.api.server import all_routes
from mainspring.cli.main import mainspring
from mainspring.core import errors
from mainspring.core.states import TRANSITIONS, State
from mainspring.observe import events

ROOT = Path(__file__).resolve().parents[1]
PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    stale = [page for page in pages() if page.read_text() != renewed(page.read_text())]
    for page in stale:
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(renewed(page.read_text()))
    sys.exit(bool(stale) and "--check" in sys.argv)


def pages() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def renewed(text: str) -> str:
    return PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", text)


def state_diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    for state in State:
        for (before, event), after in TRANSITIONS.items():
            if before is state:
                lines.append(f"    {before.name.lower()} --> {after.name.lower()}: {event.value}")
    return "\n".join([*lines, "```", ""])


def state_table() -> str:
    lines = ["| in this state | a run takes |", "|---|---|"]
    for state in State:
        events = [
            f"`{event.value}` → {after.name.lower()}"
            for (before, event), after in TRANSITIONS.items()
            if before is state
        ]
        lines.append(f"| {state.name.lower()} | {', '.join(events) or 'nothing: it has ended'} |")
    return "\n".join([*lines, ""])


def settings() -> str:
    values = config.load(environment={}, folder=ROOT / "docs").as_texts()
    lines = ["| setting | environment | default | meaning |", "|---|---|---|---|"]
    for name, about in config.ABOUT.items():
        default = values.get(name) or "none"
        lines.append(f"| `{name}` | `MAINSPRING_{name.upper()}` | `{default}` | {about} |")
    return "\n".join([*lines, ""])


def http() -> str:
    lines = ["| call | does | answers |", "|---|---|---|"]
    for route in all_routes():
        answers = ", ".join(str(answer.status) for answer in route.answers)
        lines.append(f"| `{route.method} {route.path}` | {route.summary} | {answers} |")
    return "\n".join([*lines, ""])


def command_line() -> str:
    context = click.Context(mainspring, info_name="mainspring")
    names = mainspring.list_commands(context)
    commands = [(name, mainspring.get_command(context, name)) for name in names]
    return "\n".join(line for name, command in commands for line in _usage(command, f"mainspring {name}", context))


def _usage(command: click.Command | None, path: str, parent: click.Context) -> list[str]:
    if command is None:
        return []
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    lines = [f"### `{path}`", "", (command.help or "").strip().partition("\n\n")[0].replace("\n", " "), ""]
    options = [option for option in command.params if isinstance(option, click.Option)]
    lines += [f"- `{', '.join(option.opts)}`: {option.help or 'see above'}" for option in options if not option.hidden]
    lines += [""] if options else []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            lines += _usage(command.get_command(context, name), f"{path} {name}", context)
    return lines


def events_table() -> str:
    found = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, events.Event)]
    lines = ["| event | carries | tells |", "|---|---|---|"]
    for kind in found:
        if kind is not events.Event:
            carried = ", ".join(f"`{one.name}`" for one in dataclasses.fields(kind))
            lines.append(f"| `{kind.__name__}` | {carried} | {_first_line(kind)} |")
    return "\n".join([*lines, ""])


def error_tree() -> str:
    drawn = (errors.__doc__ or "").split("\n\n", 1)[1]
    return f"```\n{textwrap.dedent(drawn).rstrip()}\n```\n"


def _first_line(kind: type) -> str:
    text = (kind.__doc__ or "").strip()
    return "" if text.startswith(f"{kind.__name__}(") else text.partition("\n")[0]


PARTS: dict[str, Callable[[], str]] = {
    "state-diagram": state_diagram,
    "state-table": state_table,
    "settings": settings,
    "http": http,
    "command-line": command_line,
    "events": events_table,
    "errors": error_tree,
}


if __name__ == "__main__":
    main()
