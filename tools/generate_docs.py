"""Writes the parts of docs/ that are drawn from the code: `python tools/generate_docs.py`, or `--check` to compare only.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the text around it is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from mainspring.core.states import TRANSITIONS, State

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


PARTS: dict[str, Callable[[], str]] = {"state-diagram": state_diagram, "state-table": state_table}


if __name__ == "__main__":
    main()
