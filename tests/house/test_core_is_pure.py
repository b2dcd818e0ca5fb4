"""The backstop for ruff's list in src/mainspring/core/ruff.toml: what the core imports and calls, by its syntax."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tests.house.tree import name_of, parsed, python_files, refuse

FORBIDDEN_MODULES = frozenset(
    [
        "asyncio",
        "os",
        "random",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
    ]
)
FORBIDDEN_NAMES = frozenset({"open", "print", "input", "uuid1", "uuid4", "monotonic", "perf_counter", "getrandbits"})
# datetime.now(), date.today(), datetime.utcnow(): whatever the class was imported as.
FORBIDDEN_METHODS = frozenset({"now", "utcnow", "today"})
CLOCK_CLASSES = frozenset({"datetime", "date"})


def test_the_core_has_no_clock_no_chance_and_no_machine() -> None:
    refuse(
        (
            f"{name_of(path)}:{line}: {what}"
            for path in python_files("src/mainspring/core/")
            for line, what in impurities(parsed(path))
        ),
        "the core is a function of its arguments, so that every decision can be simulated and explained: pass it in",
    )


def test_the_rule_sees_what_it_forbids() -> None:
    for source in (
        "import time",
        "from os import path",
        "import msgspec",
        "from mainspring.stores import memory",
        "from datetime import datetime as when\nwhen.now()",
        "import datetime\ndatetime.datetime.now()",
        "import uuid\nuuid.uuid4()",
        "from uuid import uuid4",
        "open('x')",
    ):
        assert list(impurities(ast.parse(source))), source
    assert not list(impurities(ast.parse("from datetime import datetime\ndatetime(2026, 1, 1)\nclock = now.now")))


def impurities(tree: ast.Module) -> Iterator[tuple[int, str]]:
    clocks = set(CLOCK_CLASSES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, what) for name in node.names if (what := _foreign(name.name)))
        elif isinstance(node, ast.ImportFrom):
            clocks |= {name.asname or name.name for name in node.names if name.name in CLOCK_CLASSES}
            if node.level == 0 and (what := _foreign(node.module or "")):
                yield node.lineno, what
            yield from ((node.lineno, f"imports {name.name}") for name in node.names if name.name in FORBIDDEN_NAMES)
        elif isinstance(node, ast.Call) and (what := _forbidden_call(node.func, clocks)):
            yield node.lineno, what


def _foreign(module: str) -> str | None:
    top = module.partition(".")[0]
    if top in FORBIDDEN_MODULES:
        return f"imports {module}"
    if top == "mainspring":
        return None if module.startswith("mainspring.core") else f"imports {module}, which lies above it"
    return None if top in sys.stdlib_module_names else f"imports {module}, which is not the standard library"


def _forbidden_call(function: ast.expr, clocks: set[str]) -> str | None:
    if isinstance(function, ast.Name):
        return f"calls {function.id}()" if function.id in FORBIDDEN_NAMES else None
    if not isinstance(function, ast.Attribute):
        return None
    owner = function.value
    owner_name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
    if function.attr in FORBIDDEN_NAMES or (function.attr in FORBIDDEN_METHODS and owner_name in clocks):
        return f"calls {owner_name}.{function.attr}()"
    return None
