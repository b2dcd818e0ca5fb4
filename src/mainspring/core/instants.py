"""From days and times of day to instants: what a wall-clock schedule means in a zone.

One UTC day is one window: bit masks, a bit for each minute or second of it, say where the schedule
fires, where it would have but for a gap, and where a clock change had its hand in it. Everything
else (next, previous, how many) reads those masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from mainspring.core.zone import Change, Zone

DAY_SECONDS = 86_400
_GIVE_UP_WINDOWS = 600
"""More than 41 years of a yearly schedule, and longer than a year of days off."""


class Pattern(Protocol):
    """Days and times of day without a zone; days are numbered from 1970-01-01."""

    @property
    def unit(self) -> int:
        """Seconds for which one bit of a day's times stands: 60, or 1."""

    @property
    def elapsed(self) -> bool:
        """Follows elapsed time through clock changes, whatever the policy."""

    def times_on(self, day: int) -> int:
        """The times of this day, a bit for each unit from midnight; 0 where the day does not match."""

    def day_from(self, day: int) -> int | None:
        """The first day that may match and is not before this one."""

    def day_until(self, day: int) -> int | None:
        """The last day that may match and is not after this one."""


@dataclass(frozen=True, slots=True)
class Dst:
    """What becomes of a wall time that a clock change leaves out or repeats."""

    gap: str = "after"
    fold: str = "first"


class Window(NamedTuple):
    """One UTC day: a bit for each unit (1 or 60 seconds) from its start."""

    unit: int
    fires: int
    ghosts: int = 0
    """Would fire, had the wall time existed (gap: skip)."""
    gap: int = 0
    fold: int = 0
    closed: int = 0
    """Would fire, but the calendar says it is a day off."""
    moved: int = 0

    def mask(self, kind: Kind) -> int:
        if kind is Kind.ANY:
            return self.fires | self.ghosts | self.closed
        if kind is Kind.FIRES:
            return self.fires
        return self.ghosts if kind is Kind.GAP else self.closed


class Kind(Enum):
    """Which instants are asked for."""

    ANY = "any"
    FIRES = "fires"
    GAP = "dst_gap"
    CLOSED = "calendar"


class Instance(NamedTuple):
    """One instant (UTC seconds) found in a window."""

    second: int
    fires: bool
    marks: tuple[str, ...]


class Counts(NamedTuple):
    """How many instants fire, are left out by a gap, and fall on a day off."""

    fires: int = 0
    gap: int = 0
    closed: int = 0


class Timeline:
    """The union of patterns in one zone under one policy.

    `closed` and `moved` are the parts of the patterns that a calendar took away or brought.
    """

    __slots__ = ("closed", "dst", "moved", "patterns", "zone")

    def __init__(
        self,
        patterns: Sequence[Pattern],
        zone: Zone,
        dst: Dst,
        *,
        closed: Sequence[Pattern] = (),
        moved: Sequence[Pattern] = (),
    ) -> None:
        self.patterns = tuple(patterns)
        self.zone = zone
        self.dst = dst
        self.closed = tuple(closed)
        self.moved = tuple(moved)

    def after(self, second: int, kind: Kind = Kind.ANY) -> Instance | None:
        """The first instant later than this second."""
        day, within = divmod(second + 1, DAY_SECONDS)
        for _ in range(_GIVE_UP_WINDOWS):
            window = self.window(day)
            low = -(-within // window.unit)
            found = window.mask(kind) >> low
            if found:
                return _instance(window, day, low + (found & -found).bit_length() - 1)
            following = self._window_from(day + 1)
            if following is None:
                return None
            day, within = following, 0
        return None

    def before(self, second: int, kind: Kind = Kind.ANY) -> Instance | None:
        """The last instant earlier than this second."""
        day, within = divmod(second - 1, DAY_SECONDS)
        for _ in range(_GIVE_UP_WINDOWS):
            window = self.window(day)
            found = window.mask(kind) & ((2 << within // window.unit) - 1)
            if found:
                return _instance(window, day, found.bit_length() - 1)
            preceding = self._window_until(day - 1)
            if preceding is None:
                return None
            day, within = preceding, DAY_SECONDS - 1
        return None

    def count(self, start: int, end: int) -> Counts:
        """How many instants there are from `start` up to `end`, which is not included."""
        fires = ghosts = closed = 0
        day: int | None = start // DAY_SECONDS
        while day is not None and day * DAY_SECONDS < end:
            window = self.window(day)
            low = max(0, -(-(start - day * DAY_SECONDS) // window.unit))
            high = min(DAY_SECONDS // window.unit, -(-(end - day * DAY_SECONDS) // window.unit))
            mask = ((1 << max(0, high - low)) - 1) << low
            fires += (window.fires & mask).bit_count()
            ghosts += (window.ghosts & mask).bit_count()
            closed += (window.closed & mask).bit_count()
            day = self._window_from(day + 1)
        return Counts(fires, ghosts, closed)

    def window(self, day: int) -> Window:
        start = day * DAY_SECONDS
        changes = self.zone.changes(start, start + DAY_SECONDS)
        offset = self.zone.offset(start)
        window = _union([_window(pattern, day, changes, offset, self.dst) for pattern in self.patterns])
        if not self.closed:
            return window
        closed = _union([_window(pattern, day, changes, offset, self.dst) for pattern in self.closed])
        moved = _union([_window(pattern, day, changes, offset, self.dst) for pattern in self.moved])
        closed_mask = (closed.fires | closed.ghosts) & ~(window.fires | window.ghosts)
        return window._replace(closed=closed_mask, moved=moved.fires & window.fires)

    def _window_from(self, day: int) -> int | None:
        """The first window, not before this one, that can hold anything: local days lie up to two days off."""
        days = [found for pattern in self.patterns if (found := pattern.day_from(day - 2)) is not None]
        return max(day, min(days) - 2) if days else None

    def _window_until(self, day: int) -> int | None:
        days = [found for pattern in self.patterns if (found := pattern.day_until(day + 2)) is not None]
        return min(day, max(days) + 2) if days else None


def _instance(window: Window, day: int, bit: int) -> Instance:
    marks = tuple(
        mark
        for mark, mask in (
            ("dst_gap", window.gap),
            ("dst_fold", window.fold),
            ("calendar", window.closed | window.moved),
        )
        if mask >> bit & 1
    )
    return Instance(day * DAY_SECONDS + bit * window.unit, bool(window.fires >> bit & 1), marks)


def _union(windows: Sequence[Window]) -> Window:
    if len(windows) == 1:
        return windows[0]
    unit = min(window.unit for window in windows)
    fires = ghosts = gap = fold = 0
    for each in windows:
        window = each if each.unit == unit else Window(unit, *(_spread_out(mask) for mask in each[1:5]))
        fires |= window.fires
        ghosts |= window.ghosts
        gap |= window.gap
        fold |= window.fold
    return Window(unit, fires, ghosts & ~fires, gap, fold)


def _spread_out(mask: int) -> int:
    """A mask of minutes as a mask of seconds."""
    spread = 0
    while mask:
        low = mask & -mask
        spread |= 1 << 60 * (low.bit_length() - 1)
        mask ^= low
    return spread


def _window(pattern: Pattern, day: int, changes: Sequence[Change], offset: int, dst: Dst) -> Window:
    unit = pattern.unit
    start = day * DAY_SECONDS
    if not changes and offset % unit == 0:
        return Window(unit, _walls(pattern, start + offset, DAY_SECONDS, unit))
    if any(part % unit for change in changes for part in change) or offset % unit:
        unit = 1
    return _Changing(pattern, start, changes, dst, unit).window(offset)


def _walls(pattern: Pattern, wall: int, length: int, unit: int) -> int:
    """A bit for each unit of local time from `wall` on that the pattern names."""
    day, within = divmod(wall, DAY_SECONDS)
    bits, position = 0, -(within // unit)
    while position * unit < length:
        times = pattern.times_on(day)
        if times:
            fine = times if pattern.unit == unit else _spread_out(times)
            bits |= fine >> -position if position < 0 else fine << position
        day, position = day + 1, position + DAY_SECONDS // unit
    return bits & ((1 << length // unit) - 1)


class _Changing:
    """A window with a clock change in or near it, put together from its stretches of one offset."""

    def __init__(self, pattern: Pattern, start: int, changes: Sequence[Change], dst: Dst, unit: int) -> None:
        self.pattern = pattern
        self.start = start
        self.changes = changes
        self.dst = dst
        self.unit = unit

    def window(self, offset: int) -> Window:
        fires = fold = gap = ghosts = 0
        for low, high, shift in self._stretches(offset):
            fires |= self._at(low, self._local(low + shift, high - low))
        for change in self.changes:
            if change.jump < 0:
                fires, repeated = self._fold(fires, change)
                fold |= repeated
            elif not self.pattern.elapsed:
                moved = self._gap(change)
                gap |= moved
                if self.dst.gap == "skip":
                    ghosts |= moved
                else:
                    fires |= moved
        return Window(self.unit, fires, ghosts & ~fires, gap, fold & fires)

    def _stretches(self, offset: int) -> Iterator[tuple[int, int, int]]:
        low, end = self.start, self.start + DAY_SECONDS
        for change in self.changes:
            if low < change.at < end:
                yield low, change.at, offset
                low, offset = change.at, change.after
        yield low, end, offset

    def _fold(self, fires: int, change: Change) -> tuple[int, int]:
        """What is left of the instants at a fold, and which of them are ambiguous."""
        first = self._at(change.at + change.jump, (1 << -change.jump // self.unit) - 1)
        second = self._at(change.at, (1 << -change.jump // self.unit) - 1)
        if not self.pattern.elapsed and self.dst.fold == "first":
            fires &= ~second
        elif not self.pattern.elapsed and self.dst.fold == "second":
            fires &= ~first
        return fires, first | second

    def _gap(self, change: Change) -> int:
        """Where the wall times that do not exist fire instead, or would."""
        missing = self._local(change.at + change.before, change.jump)
        if not missing:
            return 0
        if self.dst.gap == "before":
            return self._at(change.at - change.jump, missing)
        return self._at(change.at, 1)

    def _local(self, wall: int, length: int) -> int:
        return _walls(self.pattern, wall, length, self.unit)

    def _at(self, second: int, bits: int) -> int:
        """The bits placed at this instant, as far as they lie within the window."""
        position = (second - self.start) // self.unit
        placed = bits << position if position >= 0 else bits >> -position
        return placed & ((1 << DAY_SECONDS // self.unit) - 1)
