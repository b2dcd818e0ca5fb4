"""A recurrence rule with its beginning, as days and times of day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from math import gcd

from mainspring.core.cron import EPOCH_ORDINAL, LAST_DAY, month_shape, times_of_day
from mainspring.core.instants import DAY_SECONDS
from mainspring.core.rrule import Rule
from mainspring.core.zone import Zone

_MOST_MONTHS = 600
"""Looked through before giving up; months that cannot match are passed over and not counted."""

_ASK = -1
_BLOCKS = {"SECONDLY": 1, "MINUTELY": 60, "HOURLY": 3_600}


@lru_cache(maxsize=4_096)
def rule_pattern(rule: Rule, zone: Zone, begin: int, *, exact: bool) -> RulePattern:
    """The pattern of a rule that begins at this UTC second; `exact` when somebody named that second."""
    until = rule.until
    if until is not None and rule.until_utc:
        until += zone.offset(until)
    return RulePattern(rule, begin + zone.offset(begin), until, exact=exact)


class RulePattern:
    """See `mainspring.core.instants.Pattern`."""

    def __init__(self, rule: Rule, begin: int, until: int | None, *, exact: bool) -> None:
        self.rule = rule
        self.elapsed = rule.within_day
        self._begin_day, self._begin_second = divmod(begin, DAY_SECONDS)
        self._begin = date.fromordinal(self._begin_day + EPOCH_ORDINAL)
        hours, minutes, seconds = self._clock(exact=exact)
        self.unit = 60 if seconds == (0,) and rule.frequency != "SECONDLY" else 1
        self._times = times_of_day(hours, minutes, seconds, self.unit)
        self._stride: int | None = None
        self._block = self._begun = 0
        self._strides: dict[int, int] = {}
        self._set_stride()
        self._month_days, self._weekdays, self._months = self._defaults()
        self._cache: dict[int, dict[int, int]] = {}
        self._years: dict[int, dict[int, int]] = {}
        self._end = LAST_DAY
        self._last_times = -1
        if until is not None:
            self._end, second = divmod(until, DAY_SECONDS)
            self._end = min(self._end, LAST_DAY)
            self._last_times = (2 << second // self.unit) - 1
        elif rule.count is not None:
            self._end, self._last_times = self._end_of_count(rule.count)

    def times_on(self, day: int) -> int:
        if not self._begin_day <= day <= self._end:
            return 0
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        times = self._month(moment.year * 12 + moment.month - 1).get(day, 0)
        if times == _ASK:
            times = self._times_of(day)
        if day == self._begin_day:
            first = -(-self._begin_second // self.unit)
            times = times >> first << first
        return times & self._last_times if day == self._end else times

    def day_from(self, day: int) -> int | None:
        day = max(day, self._begin_day)
        if not self._times:
            return None
        if day > self._end:
            return None
        return next((each for each in self._days_from(day) if each >= day), None)

    def day_until(self, day: int) -> int | None:
        day = min(day, self._end)
        if day < self._begin_day or not self._times:
            return None
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        first = self._begin.year * 12 + self._begin.month - 1
        for index in range(moment.year * 12 + moment.month - 1, max(first, 12) - 1, -1):
            found = [each for each in self._month(index) if each <= day]
            if found:
                return max(found)
        return None

    def _days_from(self, day: int) -> Iterator[int]:
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        index = moment.year * 12 + moment.month - 1
        looked = 0
        most = _MOST_MONTHS // 10 if self.rule.positions else _MOST_MONTHS
        while looked < most and index < 9_998 * 12:
            if self._may(index):
                looked += 1
                yield from sorted(self._month(index))
            index += 1

    def _end_of_count(self, count: int) -> tuple[int, int]:
        """The day of the last instant, and the times of that day up to it."""
        left, day, last = count, self._begin_day - 1, self._begin_day
        while True:
            following = self.day_from(day + 1)
            if following is None:
                return last, -1
            day, times = following, self.times_on(following)
            if times:
                last = day
            if times.bit_count() >= left:
                return day, _first_bits(times, left)
            left -= times.bit_count()

    def _clock(self, *, exact: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        rule = self.rule
        hour, rest = divmod(self._begin_second, 3_600)
        minute, second = divmod(rest, 60)
        if not exact and (rule.hours or rule.minutes):
            minute, second = 0, 0
        hours = rule.hours or (tuple(range(24)) if rule.within_day else (hour,))
        every_minute = rule.frequency in ("MINUTELY", "SECONDLY")
        minutes = rule.minutes or (tuple(range(60)) if every_minute else (minute,))
        seconds = rule.seconds or (tuple(range(60)) if rule.frequency == "SECONDLY" else (second,))
        return hours, minutes, seconds

    def _defaults(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...]]:
        """What the rule leaves open comes from its beginning."""
        rule = self.rule
        if rule.month_days or rule.weekdays or rule.year_days or rule.frequency not in ("WEEKLY", "MONTHLY", "YEARLY"):
            return rule.month_days, rule.weekdays, rule.months
        if rule.frequency == "WEEKLY":
            return (), ((self._begin.weekday(), 0),), rule.months
        if rule.frequency == "MONTHLY":
            return (self._begin.day,), (), rule.months
        return (self._begin.day,), (), rule.months or (self._begin.month,)

    def _may(self, index: int) -> bool:
        """Whether this month can hold anything."""
        year, month = index // 12, index % 12 + 1
        if self._months and month not in self._months:
            return False
        if self.rule.year_days and not any(self._reaches(year, month, number) for number in self.rule.year_days):
            return False
        if self.rule.frequency == "YEARLY":
            return (year - self._begin.year) % self.rule.interval == 0
        if self.rule.frequency == "MONTHLY":
            return (index - self._begin.year * 12 - self._begin.month + 1) % self.rule.interval == 0
        return True

    @staticmethod
    def _reaches(year: int, month: int, number: int) -> bool:
        """Whether this day of the year lies in this month."""
        day = date(year, 1, 1).toordinal() + number - 1 if number > 0 else date(year, 12, 31).toordinal() + number + 1
        found = date.fromordinal(day)
        return (found.year, found.month) == (year, month)

    def _month(self, index: int) -> dict[int, int]:
        """The times of each matching day of this month."""
        if not self._may(index):
            return {}
        found = self._cache.get(index)
        if found is None:
            if len(self._cache) > 64:
                self._cache.clear()
            found = self._cache[index] = self._fresh_month(index)
        return found

    def _fresh_month(self, index: int) -> dict[int, int]:
        year, month = index // 12, index % 12 + 1
        first = _day(year, month)
        last = first + month_shape(year, month)[1] - 1
        if not self.rule.positions:
            return dict.fromkeys(self._matching(first, last), _ASK)
        if self.rule.frequency == "YEARLY":
            return {day: times for day, times in self._year(year).items() if first <= day <= last}
        periods = (self._positions(self._matching(low, high)) for low, high in self._periods(first, last))
        return {day: times for found in periods for day, times in found.items() if first <= day <= last}

    def _year(self, year: int) -> dict[int, int]:
        if year not in self._years:
            self._years.clear()
            self._years[year] = self._positions(self._matching(_day(year, 1), _day(year + 1, 1) - 1))
        return self._years[year]

    def _periods(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The days, weeks or month that positions are counted in, as they touch these days."""
        if self.rule.frequency == "MONTHLY":
            yield first, last
            return
        size = 7 if self.rule.frequency == "WEEKLY" else 1
        start = first - (first + 3 - self.rule.week_start) % size
        for low in range(start, last + 1, size):
            yield low, low + size - 1

    def _positions(self, days: list[int]) -> dict[int, int]:
        per_day = self._times.bit_count()
        total = len(days) * per_day
        found: dict[int, int] = {}
        for position in self.rule.positions:
            at = position - 1 if position > 0 else total + position
            if 0 <= at < total:
                day, nth = days[at // per_day], at % per_day
                bit = _first_bits(self._times, nth + 1) & ~_first_bits(self._times, nth)
                found[day] = found.get(day, 0) | bit
        return found

    def _matching(self, first: int, last: int) -> list[int]:
        """The matching days from the first to the last, month by month; most months are ruled out by a few dates."""
        found: list[int] = []
        low = first
        while low <= last:
            moment = date.fromordinal(low + EPOCH_ORDINAL)
            length = month_shape(moment.year, moment.month)[1]
            start = low - moment.day + 1
            high = min(last, start + length - 1)
            if not self._months or moment.month in self._months:
                numbers = {number if number > 0 else length + 1 + number for number in self._month_days}
                days = sorted(start + number - 1 for number in numbers if 0 < number <= length)
                days = days if self._month_days else list(range(low, high + 1))
                found += [
                    day for day in days if low <= day <= high and self._in_step(day) and self._passes(day, length)
                ]
            low = start + length
        return found

    def _in_step(self, day: int) -> bool:
        rule = self.rule
        if rule.frequency == "DAILY":
            return (day - self._begin_day) % rule.interval == 0
        if rule.frequency == "WEEKLY":
            offset = 3 - rule.week_start
            return ((day + offset) // 7 - (self._begin_day + offset) // 7) % rule.interval == 0
        return True

    def _passes(self, day: int, length: int) -> bool:
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        if self.rule.year_days and not self._passes_year_day(moment):
            return False
        return not self._weekdays or self._passes_weekday(moment, length)

    def _passes_year_day(self, moment: date) -> bool:
        number, size = moment.timetuple().tm_yday, date(moment.year, 12, 31).timetuple().tm_yday
        return bool({number, number - size - 1} & set(self.rule.year_days))

    def _passes_weekday(self, moment: date, length: int) -> bool:
        weekday = moment.weekday()
        number, size = moment.day, length
        if self.rule.frequency == "YEARLY" and not self._months:
            number, size = moment.timetuple().tm_yday, date(moment.year, 12, 31).timetuple().tm_yday
        counts = {0, (number + 6) // 7, -((size - number) // 7 + 1)}
        return any(each == weekday and nth in counts for each, nth in self._weekdays)

    def _times_of(self, day: int) -> int:
        """The times of a matching day: all of them, or those that an interval of hours or less comes by."""
        if self._stride is None:
            return self._times
        block, stride, size = self._block, self._stride, DAY_SECONDS // self.unit
        first = (self._begun - day * size) % stride
        if first not in self._strides:
            if len(self._strides) > 64:
                self._strides.clear()
            self._strides[first] = self._times & _repeated(block, stride, first, size) if first < size else 0
        return self._strides[first]

    def _set_stride(self) -> None:
        rule, size = self.rule, DAY_SECONDS // self.unit
        if not rule.within_day or rule.interval == 1:
            return
        self._block = _BLOCKS[rule.frequency] // self.unit
        self._stride = self._block * rule.interval
        self._begun = self._begin_day * size + self._begin_second // self.unit // self._block * self._block
        shared = gcd(self._stride, size)
        if not self._times & _repeated(self._block, shared, self._begun % shared, size):
            self._times = 0


def _day(year: int, month: int) -> int:
    return date(year, month, 1).toordinal() - EPOCH_ORDINAL


def _first_bits(mask: int, count: int) -> int:
    """The lowest `count` set bits."""
    low, high = 0, mask.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return mask & ((1 << low) - 1)


def _repeated(block: int, stride: int, first: int, size: int) -> int:
    """`block` bits set at `first` and every `stride` after it, up to `size`."""
    bits, have = (1 << block) - 1, stride
    while have < size - first:
        bits |= bits << have
        have *= 2
    return bits << first & ((1 << size) - 1)
