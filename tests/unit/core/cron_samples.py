"""Cron expressions drawn by a seed, from plain ones to odd ones."""

from __future__ import annotations

from random import Random

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def expression(random: Random, *, seconds: bool = False) -> str:
    """Five fields (or six) that cronsim reads as well."""
    fields = [
        _field(random, 0, 59),
        _field(random, 0, 23),
        _days(random),
        _field(random, 1, 12, _MONTHS, star=0.6),
        _weekdays(random),
    ]
    return " ".join([_field(random, 0, 59), *fields] if seconds else fields)


def _field(random: Random, low: int, high: int, names: tuple[str, ...] = (), star: float = 0.3) -> str:
    if random.random() < star:
        return "*" if random.random() < 0.6 else f"*/{random.randint(1, high - low)}"
    return ",".join(_item(random, low, high, names) for _ in range(random.choice((1, 1, 1, 2, 3))))


def _item(random: Random, low: int, high: int, names: tuple[str, ...]) -> str:
    first = random.randint(low, high)
    last = random.randint(first, high)
    kind = random.random()
    step = random.randint(1, max(1, (high - low) // 2))
    if kind < 0.5:
        return _shown(random, first, low, names)
    if kind < 0.6:
        return f"{first}/{step}"
    ends = f"{_shown(random, first, low, names)}-{_shown(random, last, low, names)}"
    if kind < 0.8 or first == last:
        return ends
    return f"{ends}/{step}"


def _shown(random: Random, number: int, low: int, names: tuple[str, ...]) -> str:
    if not names or number - low >= len(names) or random.random() < 0.5:
        return str(number)
    name = names[number - low]
    return name.upper() if random.random() < 0.3 else name


def _days(random: Random) -> str:
    kind = random.random()
    if kind < 0.08:
        return "L"
    if kind < 0.14:
        return "LW"
    if kind < 0.18:
        return f"{random.randint(1, 28)},L"
    return _field(random, 1, 31, star=0.5)


def _weekdays(random: Random) -> str:
    kind = random.random()
    if kind < 0.06:
        return f"{random.randint(0, 7)}L"
    if kind < 0.14:
        return f"{random.choice(_WEEKDAYS)}#{random.randint(1, 5)}"
    if kind < 0.18:
        return f"{random.randint(0, 6)},{random.randint(0, 7)}#{random.randint(1, 5)}"
    return _field(random, 0, 7, _WEEKDAYS, star=0.6)
