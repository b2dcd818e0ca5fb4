"""SQL lies in files, in named blocks that say why they are there and that their store uses.

-- name: claim
-- Takes the heads of the lanes; skips what another worker is taking.
with …
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.house.tree import SOURCE, name_of, parsed, project_files, python_files, refuse

DIALECTS = ("sqlite", "postgres")
NAME = re.compile(r"^-- name: *(\S+)[^\S\n]*$", re.MULTILINE)
STATEMENT = re.compile(
    r"^\s*(with\s+\w+.*\bas\b.*\(|select\b.*\bfrom\b|insert\s+(or\s+\w+\s+)?into\b|update\s+\S+\s+set\b|delete\s+from\b|"
    r"(create|alter|drop)\s+(or\s+replace\s+)?(unique\s+)?(table|index|view|function|trigger|type)\b)",
    re.IGNORECASE | re.DOTALL,
)

# Statements that only one dialect needs under their name, for verbs that both have.
ONE_DIALECT: dict[str, str] = {
    "hold_sign": "on SQLite a sign of life is a lock of the operating system on a file beside the store",
    "signs": "on SQLite a sign of life is a lock of the operating system on a file beside the store",
    "list_runs": "on SQLite each index has a statement of its own, since its planner merges none",
}


@dataclass(frozen=True, slots=True)
class Block:
    path: Path
    name: str
    body: str


def test_no_sql_in_python() -> None:
    refuse(
        (
            f"{name_of(path)}:{line}: {' '.join(text.split())[:80]}"
            for path in python_files("src/")
            for line, text in statements(parsed(path))
        ),
        "SQL lies in .sql files, where it can be read whole, explained and compared between dialects",
    )


def test_every_block_says_why_it_is_there() -> None:
    refuse(
        (f"{name_of(block.path)}: {block.name}" for block in all_blocks() if not described(block.body)),
        "under its name a block has a comment of one line that says why it is there",
    )


def test_no_statement_stands_outside_of_a_block() -> None:
    refuse(
        (name_of(path) for path in files_of_blocks() if not only_comments(NAME.split(path.read_text(), maxsplit=1)[0])),
        "what stands before the first `-- name:` of a file is never run",
    )


def test_a_name_is_given_once_in_a_dialect() -> None:
    counted = Counter((dialect_of(block.path), block.name) for block in all_blocks())
    refuse(
        (f"{dialect}: {name}" for (dialect, name), times in counted.items() if times > 1), "of two blocks, one hides"
    )


def test_every_block_is_used_by_its_store() -> None:
    refuse(
        (
            f"{name_of(block.path)}: {block.name}"
            for block in all_blocks()
            if block.name not in words(dialect_of(block.path))
            and not block.name.startswith(tuple(beginnings(dialect_of(block.path))))
        ),
        "a block that its store does not name is dead, or its name is misspelt",
    )


def test_dialects_have_sql_for_the_same_verbs() -> None:
    """A verb of the port that has a block of its name in one dialect has one in the other, or a reason not to."""
    names = {dialect: {b.name for b in all_blocks() if dialect_of(b.path) == dialect} for dialect in DIALECTS}
    if not all(names.values()):
        return
    verbs = port_verbs()
    only_one = {name for name in names["sqlite"] ^ names["postgres"] if name in verbs} - set(ONE_DIALECT)
    refuse(only_one, "one semantics on every store: a verb is written in both dialects under the same name")
    stale = {name for name in ONE_DIALECT if name not in names["sqlite"] ^ names["postgres"]}
    refuse(stale, "these exceptions are out of date; the list shrinks")


def test_the_rules_see_what_they_are_for() -> None:
    source = (
        'def f():\n    """Select a row from the list."""\n    run(f"SELECT {x} FROM runs")\n    run("delete from runs")'
    )
    assert [line for line, _ in statements(ast.parse(source))] == [3, 4]
    assert not list(statements(ast.parse('say("updates the runs", "selected from", "insert a coin")')))
    assert described("\n-- Why.\nselect 1")
    assert not described("\nselect 1")
    assert only_comments("-- a\n\n")
    assert not only_comments("select 1;")


def statements(tree: ast.Module) -> Iterator[tuple[int, str]]:
    documentation = set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            documentation |= set(map(id, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            text = node.value
        else:
            continue
        if STATEMENT.search(text):
            yield node.lineno, text


def _docstrings(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)


def files_of_blocks() -> list[Path]:
    return [
        path
        for path in project_files()
        if path.suffix == ".sql" and path.is_relative_to(SOURCE / "stores") and "migrations" not in path.parts
    ]


@cache
def all_blocks() -> tuple[Block, ...]:
    blocks = []
    for path in files_of_blocks():
        _, *parts = NAME.split(path.read_text(encoding="utf-8"))
        blocks += [Block(path, name, body) for name, body in zip(parts[::2], parts[1::2], strict=True)]
    return tuple(blocks)


def dialect_of(path: Path) -> str:
    return path.relative_to(SOURCE / "stores").parts[0]


def described(body: str) -> bool:
    first = body.strip().split("\n", 1)[0]
    return first.startswith("-- ") and len(first) > 5


def only_comments(text: str) -> bool:
    return all(not line.strip() or line.startswith("--") for line in text.splitlines())


@cache
def words(dialect: str) -> frozenset[str]:
    """What the Python of this store, and what the stores share, can name a block by: a text or an attribute."""
    found: set[str] = set()
    for path in python_files(f"src/mainspring/stores/{dialect}", "src/mainspring/stores/shared"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return frozenset(found)


def beginnings(dialect: str) -> frozenset[str]:
    """Where a name is put together (`f"where_{field}"`), what it begins with."""
    return frozenset(
        first.value
        for path in python_files(f"src/mainspring/stores/{dialect}")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2
        and isinstance(first := node.values[0], ast.Constant)
        and isinstance(first.value, str) and re.fullmatch(r"[a-z_]+_", first.value)
    )  # fmt: skip


def port_verbs() -> frozenset[str]:
    return frozenset(
        node.name
        for path in python_files("src/mainspring/ports/")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
