from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, name_of, project_files, refuse

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
DECISION_LINES_MAX = 40


def test_every_link_in_the_documents_leads_somewhere() -> None:
    refuse(
        (f"{name_of(page)}: {link}" for page in pages() for link in broken_links(page)),
        "a link that leads nowhere costs a reader more than no link",
    )


def test_decisions_are_short_and_numbered_without_gaps() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    numbers = [int(page.name.partition("-")[0]) for page in decisions]
    assert numbers == list(range(1, len(numbers) + 1)), f"each decision has the next number: {numbers}"
    long = [page.name for page in decisions if len(page.read_text().splitlines()) > DECISION_LINES_MAX]
    assert not long, f"a decision tells context, choice and cost in {DECISION_LINES_MAX} lines: {long}"


def pages() -> Iterator[Path]:
    return (path for path in project_files() if path.suffix == ".md")


def broken_links(page: Path) -> Iterator[str]:
    for target in LINK.findall(CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        place, _, anchor = target.partition("#")
        path = (page.parent / place).resolve() if place else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            yield target


def anchors(page: Path) -> set[str]:
    """As the usual renderers make them: lower case, punctuation dropped, spaces to dashes."""
    text = CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}
