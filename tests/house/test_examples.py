from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import mainspring
from tests.house.tree import name_of, project_files, refuse

PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_is_python_that_imports_what_there_is() -> None:
    refuse(
        (
            f"{name_of(page)}: {problem}"
            for page in project_files()
            if page.suffix == ".md"
            for problem in problems_of(page)
        ),
        "an example that does not run is the first thing that a new user meets",
    )


def problems_of(page: Path) -> Iterator[str]:
    for code in PYTHON_BLOCK.findall(page.read_text(encoding="utf-8")):
        try:
            compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError as error:
            yield f"{error.msg} in {error.text!r}"
            continue
        yield from (
            f"mainspring has no {name}" for name in front_names(ast.parse(code)) if not hasattr(mainspring, name)
        )


def front_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "mainspring":
            yield from (name.name for name in node.names)
