from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.tree import name_of, parsed, python_files, refuse

# The simulation's loop has a virtual clock: `asyncio.sleep` costs no time there and is how simulated work takes some.
REAL_TIME = ("tests/unit/", "tests/contract/")
VIRTUAL_TIME = ("tests/simulation/",)


def test_no_test_waits_by_sleeping() -> None:
    refuse(
        (
            f"{name_of(path)}:{line}: {call}"
            for folders, virtual in ((REAL_TIME, False), (VIRTUAL_TIME, True))
            for path in python_files(*folders)
            for line, call in sleeps(parsed(path), virtual=virtual)
        ),
        "a test that sleeps is slow where it passes and fails where the machine is slower: wait for a named event, "
        "or move time. Only tests/faults and tests/e2e may sleep",
    )


def test_the_rule_sees_a_sleep_and_lets_a_turn_of_the_loop_pass() -> None:
    asleep = ast.parse("import time, asyncio\ntime.sleep(1)\nasyncio.sleep(0.1)\nasyncio.sleep(0)\nsleep(2)")
    assert [line for line, _ in sleeps(asleep, virtual=False)] == [2, 3, 5]
    assert [line for line, _ in sleeps(asleep, virtual=True)] == [2, 5]


def sleeps(tree: ast.Module, *, virtual: bool) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (call := ast.unparse(node.func)).rpartition(".")[2] == "sleep":
            yields_only = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if not yields_only and not (virtual and call == "asyncio.sleep"):
                yield node.lineno, f"{call}(…)"
