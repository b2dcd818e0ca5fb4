"""Recurrence rules of iCalendar (RFC 5545): all frequencies, without BYWEEKNO.

The rule begins at the job's `start_at`, else at its creation; hours and minutes that it does not
name are those of its beginning. Where there is no `start_at`, but an hour or minute is named, what
is finer than that is 0: BYHOUR=9 is nine o'clock.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import datetime

from mainspring.core.errors import InvalidInput, Problem

FREQUENCIES = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
LONGEST_RULE = 1_000
MOST_COUNT = 10_000
MOST_INTERVAL = 1_000

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time
_WEEKDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})(Z)?)?", re.ASCII)
_NUMBERS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_NUMBERS)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was written; empty tuples stand for parts left out."""

    text: str
    frequency: str
    interval: int = 1
    count: int | None = None
    until: int | None = None
    """Seconds of local time since 1970, or of UTC; included."""
    until_utc: bool = False
    week_start: int = 0
    weekdays: tuple[tuple[int, int], ...] = ()
    """(weekday, n): Monday is 0; n is which one of the month or year, 0 for each."""
    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def within_day(self) -> bool:
        return self.frequency in ("SECONDLY", "MINUTELY", "HOURLY")


def read_rule(value: object, pointer: str = "/rrule") -> Rule:
    """The rule; refused with everything that is wrong with it."""
    if not isinstance(value, str):
        raise InvalidInput.at(pointer, 'must be a recurrence rule as text, such as "FREQ=MONTHLY;BYDAY=-1FR"')
    if len(value) > LONGEST_RULE:
        raise InvalidInput.at(pointer, f"is {len(value)} characters long; at most {LONGEST_RULE} are read")
    text = value.strip()
    return _Reader(text, pointer).read()


class _Reader:
    def __init__(self, text: str, pointer: str) -> None:
        self.text = text
        self.pointer = pointer
        self.problems: list[Problem] = []
        self.parts: dict[str, str] = {}

    def read(self) -> Rule:
        self._split()
        frequency = self._frequency()
        until, until_utc = self._until()
        rule = Rule(
            text=self.text,
            frequency=frequency,
            interval=self._one("INTERVAL", 1, MOST_INTERVAL) or 1,
            count=self._one("COUNT", 1, MOST_COUNT),
            until=until,
            until_utc=until_utc,
            week_start=self._week_start(),
            weekdays=self._weekdays(frequency),
            months=self._numbers("BYMONTH"),
            month_days=self._numbers("BYMONTHDAY"),
            year_days=self._numbers("BYYEARDAY"),
            hours=self._numbers("BYHOUR"),
            minutes=self._numbers("BYMINUTE"),
            seconds=self._numbers("BYSECOND"),
            positions=self._numbers("BYSETPOS"),
        )
        self._contradictions(rule)
        if self.problems:
            raise InvalidInput(self.problems)
        return rule

    def _split(self) -> None:
        body = self.text.upper().removeprefix("RRULE:")
        if "DTSTART" in body:
            self._wrong('holds DTSTART; put it into the field "start_at", and the zone into "timezone"')
            return
        for part in body.rstrip(";").split(";"):
            name, equals, value = part.strip().partition("=")
            if not equals or not value:
                self._wrong(f"{part[:20]!r} is no NAME=VALUE; parts are separated by ';'")
            elif name not in _PARTS:
                near = difflib.get_close_matches(name[:20], _PARTS, n=1, cutoff=0.5)
                self._wrong(
                    f"{name[:20]!r} is unknown; {f'did you mean {near[0]}?' if near else 'known: ' + ', '.join(_PARTS)}"
                )
            elif name in self.parts:
                self._wrong(f"{name} stands there twice")
            else:
                self.parts[name] = value

    def _frequency(self) -> str:
        frequency = self.parts.get("FREQ", "")
        if frequency not in FREQUENCIES:
            self._wrong(
                f"FREQ must be one of {', '.join(FREQUENCIES)}" + (f", not {frequency[:20]!r}" if frequency else "")
            )
        return frequency

    def _one(self, name: str, low: int, high: int) -> int | None:
        text = self.parts.get(name)
        if text is None:
            return None
        if text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high:
            return int(text)
        self._wrong(f"{name} must be a whole number from {low} to {high}, not {text[:12]!r}")
        return None

    def _numbers(self, name: str) -> tuple[int, ...]:
        low, high, signed = _NUMBERS[name]
        found = set()
        for item in self.parts[name].split(",") if name in self.parts else ():
            digits = item.removeprefix("+").removeprefix("-" if signed else "+")
            if digits.isascii() and digits.isdigit() and len(digits) < 4 and low <= int(digits) <= high:
                found.add(int(item))
            else:
                also = f" or -{high} to -{low}" if signed else ""
                self._wrong(f"{name} takes {low} to {high}{also}, not {item[:12]!r}")
        return tuple(sorted(found))

    def _weekdays(self, frequency: str) -> tuple[tuple[int, int], ...]:
        found = set()
        most = {"MONTHLY": 5, "YEARLY": 53}.get(frequency, 0)
        for item in self.parts["BYDAY"].split(",") if "BYDAY" in self.parts else ():
            match = _WEEKDAY.fullmatch(item)
            if match is None:
                self._wrong(f"BYDAY takes {', '.join(WEEKDAYS)}, such as MO or -1FR, not {item[:12]!r}")
            elif match[1] and not 1 <= abs(int(match[1])) <= most:
                self._wrong(
                    f"BYDAY={item}: with FREQ={frequency} "
                    + (f"the number goes from 1 to {most} or -1 to -{most}" if most else "a weekday takes no number")
                )
            else:
                found.add((WEEKDAYS.index(match[2]), int(match[1] or 0)))
        return tuple(sorted(found))

    def _week_start(self) -> int:
        text = self.parts.get("WKST", "MO")
        if text not in WEEKDAYS:
            self._wrong(f"WKST takes one of {', '.join(WEEKDAYS)}, not {text[:12]!r}")
            return 0
        return WEEKDAYS.index(text)

    def _until(self) -> tuple[int | None, bool]:
        text = self.parts.get("UNTIL")
        if text is None:
            return None, False
        match = _UNTIL.fullmatch(text)
        try:
            if match is not None:
                time = (23, 59, 59) if match[4] is None else (int(match[4]), int(match[5]), int(match[6]))
                wall = datetime(int(match[1]), int(match[2]), int(match[3]), *time)  # noqa: DTZ001 - a wall time
                return (wall - _EPOCH).days * 86_400 + (wall - _EPOCH).seconds, match[7] is not None
        except ValueError:
            pass
        self._wrong(f"UNTIL takes 20261231 or 20261231T235959Z, not {text[:24]!r}")
        return None, False

    def _contradictions(self, rule: Rule) -> None:
        if rule.count is not None and rule.until is not None:
            self._wrong("has COUNT and UNTIL; a rule ends by one of them")
        if rule.positions and rule.within_day:
            self._wrong("BYSETPOS needs a FREQ of DAILY or longer")
        if rule.positions and not any(name.startswith("BY") and name != "BYSETPOS" for name in self.parts):
            self._wrong("BYSETPOS picks from what another BY… part names; add one")
        if rule.month_days and rule.frequency == "WEEKLY":
            self._wrong("BYMONTHDAY does not go with FREQ=WEEKLY; use MONTHLY or DAILY")
        if rule.year_days and rule.frequency in ("DAILY", "WEEKLY", "MONTHLY"):
            self._wrong(f"BYYEARDAY does not go with FREQ={rule.frequency}; use YEARLY")

    def _wrong(self, detail: str) -> None:
        self.problems.append(Problem(self.pointer, detail))
