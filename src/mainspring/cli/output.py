"""Answers as tables for people or as JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence

Row = Mapping[str, object]

CELL_WIDTH_MAX = 60
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def print_items(answer: Mapping[str, object], columns: Sequence[str], form: str) -> None:
    """A list answer of the API: `{"items": […], "next": …}`."""
    items = _rows(answer.get("items"))
    if form == "json":
        print(_pretty(answer))
    elif form == "jsonl":
        print_lines(items)
    else:
        _print_table(items, columns)
        if answer.get("next"):
            print(f"There is more: --cursor {answer['next']}", file=sys.stderr)


def print_item(item: Mapping[str, object], form: str) -> None:
    """One object: its fields under each other."""
    if form == "json":
        print(_pretty(item))
    elif form == "jsonl":
        print_lines([item])
    else:
        _print_fields(item)


def print_lines(items: Iterable[Row]) -> None:
    for item in items:
        print(json.dumps(item, ensure_ascii=False, separators=(",", ":")))


def note(message: str) -> None:
    """A word to the person at the terminal; programs read standard output."""
    print(message, file=sys.stderr)


def _rows(items: object) -> list[Row]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _print_table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        note("nothing found")
        return
    cells = [[_cell(row, column) for column in columns] for row in rows]
    heads = [column.rpartition(".")[2].replace("_", " ").upper() for column in columns]
    widths = [max(len(line[place]) for line in [heads, *cells]) for place in range(len(columns))]
    bold, plain = (_BOLD, _PLAIN) if _colours() else ("", "")
    print(bold + _line(heads, widths) + plain)
    for line in cells:
        print(_line(line, widths))


def _print_fields(item: Row) -> None:
    shown = {name: value for name, value in item.items() if value not in (None, [], {})}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        lines = _lines_of(name, value)
        print(f"{name:<{width}}  {lines[0]}")
        for line in lines[1:]:
            print(f"{'':<{width}}  {line}")


def _lines_of(name: str, value: object) -> list[str]:
    if name == "error":
        return _error_text(value)
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return [_in_one_line(each) for each in value]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.splitlines() or [""]


def _in_one_line(item: Row) -> str:
    """Such as one attempt of a run; its traceback is in the JSON form."""
    parts = []
    for name, value in item.items():
        if name == "error" and isinstance(value, Mapping):
            parts.append(_error_text(value)[0])
        elif value is not None:
            parts.append(f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "  ".join(parts)


def _error_text(error: object) -> list[str]:
    if not isinstance(error, Mapping):
        return [str(error)]
    head = f"{error.get('type', '')}: {error.get('message', '')}"
    return [head, *str(error.get("traceback") or "").splitlines()]


def _cell(row: Row, column: str) -> str:
    value: object = row
    for part in column.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= CELL_WIDTH_MAX else f"{text[: CELL_WIDTH_MAX - 1]}…"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
