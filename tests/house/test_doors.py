"""What import-linter cannot say about rooms that are still empty: it refuses a contract that names a missing room."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.tree import name_of, parsed, python_files, refuse

FACES = ("src/mainspring/api/", "src/mainspring/web/", "src/mainspring/cli/")
BEHIND_THE_CLIENT = ("mainspring.stores", "mainspring.queues", "mainspring.coordination")


def test_faces_know_no_store_and_no_queue() -> None:
    refuse(
        (
            f"{name_of(path)}:{line}: {module}"
            for path in python_files(*FACES)
            for line, module in imported_modules(parsed(path))
            if module.startswith(BEHIND_THE_CLIENT)
        ),
        "a face speaks to the client, so that every face has the same semantics",
    )


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)
