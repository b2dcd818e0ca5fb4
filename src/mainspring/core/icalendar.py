"""Days off from iCalendar text (RFC 5545): each event closes every day that it touches.

Read are VEVENTs with DTSTART, DTEND or DURATION, RRULE, RDATE, EXDATE and RECURRENCE-ID; cancelled
ones are passed over. Everything else in the text is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from mainspring.core.errors import InvalidInput
from mainspring.core.model import DAY
from mainspring.core.rrule import Rule, read_rule
from mainspring.core.times import read_duration

LONGEST_TEXT = 1_048_576
MOST_EVENTS = 10_000
LONGEST_EVENT = 366

_EPOCH = date(1970, 1, 1)
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})Z?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Event:
    """Days numbered from 1970-01-01; `rule` repeats the event from its first day on."""

    start: int
    length: int = 1
    rule: Rule | None = None
    excluded: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    name: str
    value: str


def read_icalendar(text: str, pointer: str = "/icalendar") -> tuple[Event, ...]:
    """The events of the text; refused with the line that is wrong."""
    if len(text) > LONGEST_TEXT:
        raise InvalidInput.at(pointer, f"is {len(text)} characters long; at most {LONGEST_TEXT} are read")
    if "BEGIN:VCALENDAR" not in text.upper():
        raise InvalidInput.at(pointer, "is no iCalendar text: BEGIN:VCALENDAR is missing")
    blocks = list(_blocks(text, pointer))
    replaced = {(_value(block, "UID"), _start(block, "RECURRENCE-ID", pointer)) for block in blocks}
    events: list[Event] = []
    for block in blocks:
        if _value(block, "STATUS").upper() != "CANCELLED":
            events += _events(block, replaced, pointer)
        if len(events) > MOST_EVENTS:
            raise InvalidInput.at(pointer, f"has more than {MOST_EVENTS} events")
    return tuple(events)


def _blocks(text: str, pointer: str) -> Iterator[list[_Line]]:
    """The lines of each VEVENT, without what is nested in it."""
    block: list[_Line] | None = None
    nested: str | None = None
    for line in _lines(text):
        kind = line.value.strip().upper()
        if block is None:
            block = [line] if (line.name, kind) == ("BEGIN", "VEVENT") else None
        elif nested is not None:
            nested = None if (line.name, kind) == ("END", nested) else nested
        elif line.name == "BEGIN":
            nested = kind
        elif line.name == "END":
            yield block
            block = None
        else:
            block.append(line)
    if block is not None:
        raise InvalidInput.at(pointer, f"line {block[0].number}: the event has no END:VEVENT")


def _lines(text: str) -> Iterator[_Line]:
    """Lines put together again where they were folded; parameters are dropped."""
    held: list[str] = []
    begun = 0
    for number, line in enumerate([*text.replace("\r\n", "\n").split("\n"), ""], start=1):
        if line[:1] in (" ", "\t") and held:
            held.append(line[1:])
            continue
        name, colon, value = "".join(held).partition(":")
        if colon:
            yield _Line(begun, name.partition(";")[0].strip().upper(), value.strip())
        held, begun = [line], number


def _events(block: list[_Line], replaced: set[tuple[str, int | None]], pointer: str) -> Iterator[Event]:
    start = _start(block, "DTSTART", pointer)
    if start is None:
        raise InvalidInput.at(pointer, f"line {block[0].number}: the event has no DTSTART")
    length = _length(block, start, pointer)
    uid = _value(block, "UID")
    dates = [day for line in block if line.name == "EXDATE" for day in _days(line, pointer)]
    if not _value(block, "RECURRENCE-ID"):
        dates += [day for other, day in replaced if other == uid and day is not None]
    rule_line = next((line for line in block if line.name == "RRULE"), None)
    rule = None if rule_line is None else _rule(rule_line, pointer)
    if rule is not None or start not in dates:
        yield Event(start, length, rule, frozenset(dates))
    for line in block:
        if line.name == "RDATE":
            yield from (Event(day, length) for day in _days(line, pointer))


def _rule(line: _Line, pointer: str) -> Rule:
    try:
        rule = read_rule(line.value, pointer)
    except InvalidInput as error:
        raise InvalidInput.at(pointer, f"line {line.number}: RRULE {error.problems[0].detail}") from None
    if rule.within_day:
        raise InvalidInput.at(pointer, f"line {line.number}: RRULE repeats within a day; a calendar holds whole days")
    return rule


def _length(block: list[_Line], start: int, pointer: str) -> int:
    """How many days the event touches; an end at midnight is not touched."""
    line = next((line for line in block if line.name in ("DTEND", "DURATION")), None)
    if line is None:
        return 1
    if line.name == "DURATION":
        length = -(-read_duration(line.value, pointer) // DAY)
    else:
        end, clock = _day(line.value, line, pointer)
        length = end - start + (1 if clock else 0)
    if length > LONGEST_EVENT or length < 0:
        raise InvalidInput.at(pointer, f"line {line.number}: the event lasts {length} days; at most {LONGEST_EVENT}")
    return max(1, length)


def _value(block: list[_Line], name: str) -> str:
    return next((line.value for line in block if line.name == name), "")


def _start(block: list[_Line], name: str, pointer: str) -> int | None:
    line = next((line for line in block if line.name == name), None)
    return None if line is None else _day(line.value, line, pointer)[0]


def _days(line: _Line, pointer: str) -> Iterator[int]:
    for value in line.value.split(","):
        yield _day(value.partition("/")[0], line, pointer)[0]


def _day(text: str, line: _Line, pointer: str) -> tuple[int, bool]:
    """The day, and whether the time named lies within it rather than at its beginning."""
    match = _DATE.fullmatch(text.strip())
    try:
        if match is not None:
            day = (date(int(match[1]), int(match[2]), int(match[3])) - _EPOCH) // timedelta(days=1)
            return day, any(int(part or 0) for part in match.groups()[3:])
    except ValueError:
        pass
    raise InvalidInput.at(pointer, f"line {line.number}: {line.name} {text[:24]!r} is no date such as 20261225")
