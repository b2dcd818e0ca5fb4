"""Every n-th instant of a cron expression, counted from where the job begins.

Counted are wall times, so that a clock change shifts nothing, and by months, so that a job of twenty
years is no slower to ask than one of today.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from mainspring.core.cron import EPOCH_ORDINAL, Cron
from mainspring.core.instants import DAY_SECONDS
from mainspring.core.zone import Zone

MOST = 1_000


@lru_cache(maxsize=4_096)
def every_nth(cron: Cron, zone: Zone, nth: int, begin: int) -> EveryNth:
    """The pattern that begins at this UTC second."""
    return EveryNth(cron, nth, begin + zone.offset(begin))


class EveryNth:
    """See `mainspring.core.instants.Pattern`."""

    def __init__(self, cron: Cron, nth: int, begin: int) -> None:
        self.cron = cron
        self.nth = nth
        self.unit = cron.unit
        self.elapsed = cron.elapsed
        self._begin_day, second = divmod(begin, DAY_SECONDS)
        self._begin_bit = -(-second // cron.unit)
        self._per_day = cron.times.bit_count()
        self._first_month = _month_of(self._begin_day)
        self._before_months = [0]
        self._picked: dict[int, int] = {}
        passed_over = cron.times & ((1 << self._begin_bit) - 1) if cron.has_day(self._begin_day) else 0
        self._skipped = self._days_before(self._begin_day) * self._per_day + passed_over.bit_count()

    def times_on(self, day: int) -> int:
        if day < self._begin_day or not self.cron.has_day(day):
            return 0
        number = self._days_before(day) * self._per_day - self._skipped
        times = self._pick(-number % self.nth)
        return times >> self._begin_bit << self._begin_bit if day == self._begin_day else times

    def day_from(self, day: int) -> int | None:
        found = self.cron.day_from(max(day, self._begin_day))
        while found is not None and not self.times_on(found):
            found = self.cron.day_from(found + 1)
        return found

    def day_until(self, day: int) -> int | None:
        found = self.cron.day_until(day)
        while found is not None and found >= self._begin_day and not self.times_on(found):
            found = self.cron.day_until(found - 1)
        return None if found is None or found < self._begin_day else found

    def _pick(self, first: int) -> int:
        """Every n-th time of a day, from the one with this number (0 is the first)."""
        picked = self._picked.get(first)
        if picked is None:
            picked, rest, number = 0, self.cron.times, 0
            while rest:
                low = rest & -rest
                if number >= first and (number - first) % self.nth == 0:
                    picked |= low
                rest ^= low
                number += 1
            if len(self._picked) > 64:
                self._picked.clear()
            self._picked[first] = picked
        return picked

    def _days_before(self, day: int) -> int:
        """How many matching days there are from the first of the month it begins in up to this day."""
        index = _month_of(day)
        while len(self._before_months) <= index - self._first_month:
            month = self._first_month + len(self._before_months) - 1
            self._before_months.append(self._before_months[-1] + self._mask(month).bit_count())
        number = date.fromordinal(day + EPOCH_ORDINAL).day
        return self._before_months[index - self._first_month] + (self._mask(index) & ((1 << number) - 1)).bit_count()

    def _mask(self, index: int) -> int:
        return self.cron.days_of_month(index // 12, index % 12 + 1)


def _month_of(day: int) -> int:
    moment = date.fromordinal(day + EPOCH_ORDINAL)
    return moment.year * 12 + moment.month - 1
