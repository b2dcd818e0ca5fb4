"""Time zones: names that are safe to look up, offsets, and the instants at which clocks change.

All numbers are whole seconds: since 1970 in UTC for instants, in local time for walls.
"""

from __future__ import annotations

import difflib
import re
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from mainspring.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9][A-Za-z0-9_+-]{0,30}){0,2}", re.ASCII)
_NOT_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory", "SystemV/")
_BUCKET_BITS = 25  # about 388 days
_STEP = 4 * 86_400  # no zone has ever changed its clocks twice within four days and ended where it began
_MARGIN = 2 * 86_400  # longer than the longest gap or fold there was (a day, at the date line)
_FIRST, _LAST = -62_000_000_000, 253_370_000_000  # seconds that a datetime can hold in any zone

_NICKNAMES = {
    "z": "UTC",
    "pst": "America/Los_Angeles",
    "pdt": "America/Los_Angeles",
    "mdt": "America/Denver",
    "cst": "America/Chicago",
    "cdt": "America/Chicago",
    "edt": "America/New_York",
    "bst": "Europe/London",
    "cest": "Europe/Berlin",
    "eest": "Europe/Helsinki",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
}


class Change(NamedTuple):
    """At `at` (UTC seconds) the offset goes from `before` to `after` (seconds east of UTC)."""

    at: int
    before: int
    after: int

    @property
    def jump(self) -> int:
        """Seconds the wall clock is put forward; negative where it is put back."""
        return self.after - self.before


class _Bucket(NamedTuple):
    offset: int
    changes: tuple[Change, ...]


class Zone:
    """One zone, with the clock changes found so far."""

    __slots__ = ("_buckets", "info", "name")

    def __init__(self, name: str, info: ZoneInfo) -> None:
        self.name = name
        self.info = info
        self._buckets: dict[int, _Bucket] = {}

    def offset(self, second: int) -> int:
        """Seconds east of UTC at this UTC second."""
        bucket = self._bucket(second >> _BUCKET_BITS)
        offset = bucket.offset
        for change in bucket.changes:
            if change.at <= second:
                offset = change.after
        return offset

    def changes(self, start: int, end: int) -> tuple[Change, ...]:
        """The clock changes that can matter to UTC seconds from `start` up to `end`, in order."""
        low, high = start - _MARGIN, end + _MARGIN
        first, last = low >> _BUCKET_BITS, high >> _BUCKET_BITS
        found = self._bucket(first).changes
        for index in range(first + 1, last + 1):
            found += self._bucket(index).changes
        return tuple(change for change in found if low <= change.at <= high) if found else found

    def _bucket(self, index: int) -> _Bucket:
        bucket = self._buckets.get(index)
        if bucket is None:
            bucket = self._buckets[index] = self._scan(index << _BUCKET_BITS, (index + 1) << _BUCKET_BITS)
        return bucket

    def _scan(self, start: int, end: int) -> _Bucket:
        first = before = self._offset_by_rules(start)
        changes = []
        for low in range(start, end, _STEP):
            high = min(low + _STEP, end)
            after = self._offset_by_rules(high)
            if after != before:
                changes += self._split(low, before, high, after)
            before = after
        return _Bucket(first, tuple(change for change in changes if change.at < end))

    def _split(self, low: int, before: int, high: int, after: int) -> list[Change]:
        """The changes in (low, high], each found by halving."""
        if before == after:
            return []
        if high - low == 1:
            return [Change(high, before, after)]
        middle = (low + high) // 2
        between = self._offset_by_rules(middle)
        return self._split(low, before, middle, between) + self._split(middle, between, high, after)

    def _offset_by_rules(self, second: int) -> int:
        inside = min(max(second, _FIRST), _LAST)
        offset = datetime.fromtimestamp(inside, self.info).utcoffset()
        return 0 if offset is None else offset.days * 86_400 + offset.seconds


def read_zone(value: object, pointer: str) -> Zone:
    """The zone of this IANA name; anything else is refused with the nearest name."""
    if not isinstance(value, str):
        raise InvalidInput.at(pointer, 'must be the name of a time zone, such as "Europe/Berlin"')
    zone = _load(value) if len(value) <= 64 and _looks_like_a_zone(value) else None
    if zone is None:
        raise InvalidInput.at(pointer, _refusal(value))
    return zone


def _looks_like_a_zone(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not name.startswith(_NOT_ZONES)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone | None:
    try:
        return Zone(name, ZoneInfo(name))
    except (OSError, ValueError, KeyError):
        return None


UTC = Zone("UTC", ZoneInfo("UTC"))


def _refusal(name: str) -> str:
    if not name:
        return 'is empty; name a time zone, such as "UTC" or "Europe/Berlin"'
    shown = name if len(name) <= 40 else name[:37] + "…"
    if re.fullmatch(r"(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?", name):
        return f'{shown!r} is an offset, not a zone; name the zone, such as "Europe/Berlin" (or "Etc/GMT-2" for +02:00)'
    near = _nearest(name) if len(name) <= 64 else None
    meant = f'did you mean "{near}"?' if near else 'write an IANA name, such as "Europe/Berlin"'
    return f"{shown!r} is no time zone; {meant}"


def _nearest(name: str) -> str | None:
    wanted = name.strip().replace(" ", "_").casefold()
    if wanted in _NICKNAMES:
        return _NICKNAMES[wanted]
    by_name = _names()
    if wanted in by_name:
        return by_name[wanted]
    city = wanted.rpartition("/")[2]
    for known in by_name:
        if known.rpartition("/")[2] == city:
            return by_name[known]
    alike = [known for known in by_name if known[:1] == wanted[:1] and abs(len(known) - len(wanted)) <= 3]
    matches = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.75)
    return by_name[matches[0]] if matches else None


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """All zone names by their lower-case form."""
    from importlib import resources  # only a wrong name needs them, and a keeper has to stay small

    try:
        names = (resources.files("tzdata") / "zones").read_text(encoding="utf-8").split()
    except (ModuleNotFoundError, OSError):
        names = sorted(available_timezones())
    return {name.casefold(): name for name in names if _looks_like_a_zone(name)}
