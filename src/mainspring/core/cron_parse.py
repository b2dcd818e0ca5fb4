"""A cron expression, read into the sets of numbers it stands for.

Five fields (minute, hour, day of month, month, day of week), or six with the dialect "seconds",
seconds first. Lists, ranges, steps, names, `L`, `L-3`, `W`, `LW`, `#`, and `H` or `~`, which
stand for numbers that depend on the job, so that many jobs spread out and each keeps its place.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass
from uuid import UUID

from mainspring.core.errors import InvalidInput

LONGEST_EXPRESSION = 1_000
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
DIALECTS = ("unix", "seconds")


@dataclass(frozen=True, slots=True)
class CronFields:
    """What each field stands for, as sorted numbers; Sunday is 0."""

    text: str
    words: tuple[str, ...]
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    days_before_last: tuple[int, ...]
    days_near: tuple[int, ...]
    last_weekday: bool
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    weekdays_nth: tuple[tuple[int, int], ...]
    weekdays_last: tuple[int, ...]
    both_days: bool
    """Day of month and day of week must both match (one begins with `*`); else either is enough."""
    elapsed: bool
    """The minute or hour field begins with `*`: follows elapsed time through clock changes."""


@dataclass(frozen=True, slots=True)
class _Field:
    title: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    spread_high: int | None = None

    def plain_names(self) -> str:
        return f" or {self.names[0]}-{self.names[-1]}" if self.names else ""


_SECOND = _Field("second", 0, 59)
_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day-of-month", 1, 31, spread_high=28)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = _Field("month", 1, 12, _MONTHS)
_WEEKDAY = _Field("day-of-week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"), spread_high=6)
_FIVE = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
_SIX = (_SECOND, *_FIVE)

_SPREAD = re.compile(r"(?:H(?:\((\w+)-(\w+)\))?|(\w*)~(\w*))", re.ASCII)


class _Wrong(Exception):
    """What is wrong with one item, and its cure."""


class _Numbers:
    """What one field collects while it is read."""

    def __init__(self) -> None:
        self.plain: set[int] = set()
        self.before_last: set[int] = set()
        self.near: set[int] = set()
        self.last_weekday = False
        self.nth: set[tuple[int, int]] = set()
        self.last: set[int] = set()


def parse_cron(
    expression: str, *, dialect: str | None = None, job_id: UUID | None = None, pointer: str = "/cron"
) -> CronFields:
    """The fields of the expression; refused with the field, the position and what was meant."""
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidInput.at(pointer, f"is {len(expression)} characters long; at most {LONGEST_EXPRESSION} are read")
    text = expression.strip()
    parts = [(match.start(), match[0]) for match in re.finditer(r"\S+", _expanded(text, dialect, pointer))]
    kinds = _kinds(parts, dialect, pointer)
    seed = (job_id or UUID(int=0)).bytes
    read = {}
    for kind, (position, word) in zip(kinds, parts, strict=True):
        read[kind.title] = _read_field(kind, word, position, seed, pointer)
    return _assemble(text, {kind.title: word for kind, (_, word) in zip(kinds, parts, strict=True)}, read)


def _assemble(text: str, words: dict[str, str], read: dict[str, _Numbers]) -> CronFields:
    day, weekday = read["day-of-month"], read["day-of-week"]
    return CronFields(
        text=text,
        words=tuple(words.values()),
        seconds=tuple(sorted(read["second"].plain)) if "second" in read else (0,),
        minutes=tuple(sorted(read["minute"].plain)),
        hours=tuple(sorted(read["hour"].plain)),
        days=tuple(sorted(day.plain)),
        days_before_last=tuple(sorted(day.before_last)),
        days_near=tuple(sorted(day.near)),
        last_weekday=day.last_weekday,
        months=tuple(sorted(read["month"].plain)),
        weekdays=tuple(sorted({number % 7 for number in weekday.plain})),
        weekdays_nth=tuple(sorted(weekday.nth)),
        weekdays_last=tuple(sorted(weekday.last)),
        both_days=words["day-of-month"].startswith("*") or words["day-of-week"].startswith("*"),
        elapsed=words["minute"].startswith("*") or words["hour"].startswith("*"),
    )


def _expanded(text: str, dialect: str | None, pointer: str) -> str:
    """The text without nicknames such as @daily."""
    if not text:
        raise InvalidInput.at(pointer, 'is empty; write five fields, such as "0 9 * * mon-fri", or "@daily"')
    if not text.startswith("@"):
        return text
    known = NICKNAMES.get(text.lower())
    if known is not None:
        return f"0 {known}" if dialect == "seconds" else known
    shown = text if len(text) <= 40 else text[:37] + "…"
    if text.lower().startswith("@every"):
        raise InvalidInput.at(pointer, f'{shown!r} is no cron expression; use the field "every", such as "every": "5m"')
    if text.lower() == "@reboot":
        raise InvalidInput.at(pointer, "'@reboot' names no time; use a start hook of the worker (@app.on_start)")
    raise InvalidInput.at(pointer, f"{shown!r} is unknown; {_meant(text.lower(), tuple(NICKNAMES))}")


def _kinds(parts: list[tuple[int, str]], dialect: str | None, pointer: str) -> tuple[_Field, ...]:
    count = len(parts)
    if parts[0][1].upper().startswith(("TZ=", "CRON_TZ=")):
        raise InvalidInput.at(pointer, 'names a zone at position 1; put it into the field "timezone"')
    if dialect == "seconds":
        if count == 6:
            return _SIX
        raise InvalidInput.at(
            pointer, f'has {count} fields; the dialect "seconds" takes six: second minute hour day month weekday'
        )
    if count == 5:
        return _FIVE
    if count == 6:
        raise InvalidInput.at(
            pointer,
            'has six fields; if the first is seconds, say "dialect": "seconds"; else write five, from minute to weekday',
        )
    raise InvalidInput.at(pointer, f"has {count} field{'s' * (count != 1)}; write five: minute hour day month weekday")


def _read_field(kind: _Field, word: str, position: int, seed: bytes, pointer: str) -> _Numbers:
    numbers = _Numbers()
    for item in word.split(","):
        try:
            _read_item(kind, item, seed, numbers)
        except _Wrong as wrong:
            shown = item if len(item) <= 24 else item[:21] + "…"
            where = f"{kind.title} field, position {position + 1}"
            raise InvalidInput.at(pointer, f"{where}: {shown!r} {wrong}") from None
        position += len(item) + 1
    return numbers


def _read_item(kind: _Field, item: str, seed: bytes, numbers: _Numbers) -> None:
    if not item:
        raise _Wrong("is an empty item of the list; remove the extra comma")
    base, slash, step_text = item.partition("/")
    step = _step(kind, step_text) if slash else 1
    if _read_special(kind, base, numbers):
        if slash:
            raise _Wrong("takes no step")
        return
    spread = _SPREAD.fullmatch(base)
    if spread:
        numbers.plain |= _spread(kind, spread, step if slash else 0, seed)
    elif base == "*":
        numbers.plain |= set(range(kind.low, kind.high + 1 - (kind is _WEEKDAY), step))
    else:
        low, high = _range(kind, base)
        if slash and "-" not in base:
            high = kind.high
        numbers.plain |= set(range(low, high + 1, step))


def _step(kind: _Field, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise _Wrong(f"needs a whole number as the step after '/', not {text[:12]!r}")
    step = int(text)
    if step == 0:
        raise _Wrong("has a step of 0, which never moves on; did you mean 1?")
    size = kind.high - kind.low + 1
    if step >= size + (kind is not _WEEKDAY):
        cure = f'; for every {step} {kind.title}s use the field "every"' if kind in (_SECOND, _MINUTE, _HOUR) else ""
        raise _Wrong(f"has a step of {step}, longer than the field ({kind.low}-{kind.high}){cure}")
    return step


def _range(kind: _Field, base: str) -> tuple[int, int]:
    first, dash, last = base.partition("-")
    low = _number(kind, first)
    if not dash:
        return low, low
    high = _number(kind, last)
    if kind is _WEEKDAY and high == 0 and low > 0 and last.lower() == "sun":
        high = 7
    if low > high:
        if kind is _WEEKDAY:
            rest = f",1-{last}" if high else ""
            raise _Wrong(f"runs backwards; did you mean '{first}-7{rest}'?")
        raise _Wrong(f"runs backwards; did you mean '{first}-{kind.high},{kind.low}-{last}'?")
    return low, high


def _number(kind: _Field, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 9:
        number = int(text)
        if kind.low <= number <= kind.high:
            return number
        raise _Wrong(f"is out of range: {number}; the {kind.title} is {kind.low}-{kind.high}{kind.plain_names()}")
    name = text.lower()
    if name in kind.names:
        return kind.names.index(name) + kind.low
    if text == "?":
        raise _Wrong("is not used here; did you mean '*'?")
    if text == "":
        raise _Wrong("lacks a number")
    if kind.names:
        raise _Wrong(f"has an unknown name, {text[:12]!r}; {_meant(name[:12], kind.names)}")
    raise _Wrong(f"holds {text[:12]!r}, which is no number from {kind.low} to {kind.high}")


def _meant(text: str, known: tuple[str, ...]) -> str:
    swapped = [name for name in known if sorted(name) == sorted(text)]
    near = swapped or difflib.get_close_matches(text[:20], known, n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?" if near else f"write one of {', '.join(known)}"


def _read_special(kind: _Field, base: str, numbers: _Numbers) -> bool:
    upper = base.upper()
    if kind is _DAY:
        return _read_special_day(upper, numbers)
    if kind is not _WEEKDAY:
        if upper in ("L", "W", "LW"):
            raise _Wrong("belongs into the day-of-month field")
        return False
    if "#" in base:
        name, _, nth = base.partition("#")
        if nth not in ("1", "2", "3", "4", "5"):
            raise _Wrong(f"needs 1 to 5 after '#' (which one of the month), not {nth[:12]!r}")
        numbers.nth.add((_number(kind, name) % 7, int(nth)))
        return True
    if upper == "L":
        raise _Wrong("does not say which weekday; 'friL' is the last Friday of the month, 'sat' is Saturday")
    if upper.endswith("L") and len(base) > 1:
        numbers.last.add(_number(kind, base[:-1]) % 7)
        return True
    return False


def _read_special_day(upper: str, numbers: _Numbers) -> bool:
    if upper == "L":
        numbers.before_last.add(0)
    elif upper in ("LW", "WL"):
        numbers.last_weekday = True
    elif upper.startswith("L-"):
        before = upper[2:]
        if not (before.isascii() and before.isdigit() and len(before) <= 2 and int(before) <= 30):
            raise _Wrong(f"needs 1 to 30 after 'L-' (days before the last), not {before[:12]!r}")
        numbers.before_last.add(int(before))
    elif upper.endswith("W") and len(upper) > 1:
        numbers.near.add(_number(_DAY, upper[:-1]))
    else:
        return False
    return True


def _spread(kind: _Field, match: re.Match[str], step: int, seed: bytes) -> set[int]:
    """The numbers that `H` or `~` stands for in this job's hands."""
    low_text, high_text = match[1] or match[3], match[2] or match[4]
    top = kind.spread_high or kind.high
    low = _number(kind, low_text) if low_text else kind.low
    high = _number(kind, high_text) if high_text else top
    if low > high:
        raise _Wrong("runs backwards; write the smaller number first")
    chosen = int.from_bytes(hashlib.blake2b(seed + kind.title.encode(), digest_size=8).digest(), "big")
    if step == 0:
        return {low + chosen % (high - low + 1)}
    return set(range(low + chosen % min(step, high - low + 1), high + 1, step))
