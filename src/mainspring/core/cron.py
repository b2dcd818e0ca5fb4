"""Which days and which times of day a cron expression names, in a calendar without zones.

Days are numbered from 1970-01-01. A month's matching days are one bit mask, found once for each
of the 28 shapes that a month can have; the times of a day are one bit mask as well, a bit for each
minute (or second). So both directions are a few shifts, however dense or rare the schedule is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from mainspring.core.cron_parse import CronFields, parse_cron
from mainspring.core.errors import InvalidInput

EPOCH_ORDINAL = 719_163
GIVE_UP_YEARS = 41
"""No weekday falls on a 29 February more rarely than every 40 years."""

FIRST_DAY = date(3, 1, 1).toordinal() - EPOCH_ORDINAL
LAST_DAY = date(9997, 12, 31).toordinal() - EPOCH_ORDINAL
"""Far enough from what a date can hold that zones and closures cannot lead beyond it."""

_ALL_MONTHS = tuple(range(1, 13))
_ALL_WEEKDAYS = tuple(range(7))
_ALL_DAYS = tuple(range(1, 32))


class Cron:
    """One expression, ready to be asked."""

    __slots__ = ("_every_day", "_months", "_shapes", "elapsed", "fields", "times", "unit")

    def __init__(self, fields: CronFields) -> None:
        self.fields = fields
        self.elapsed = fields.elapsed
        self.unit = 60 if fields.seconds == (0,) else 1
        self.times = times_of_day(fields.hours, fields.minutes, fields.seconds, self.unit)
        self._months = frozenset(fields.months)
        self._shapes: dict[tuple[int, int], int] = {}
        self._every_day = (
            fields.months == _ALL_MONTHS
            and fields.both_days
            and fields.days == _ALL_DAYS
            and fields.weekdays == _ALL_WEEKDAYS
        )

    def has_day(self, day: int) -> bool:
        if self._every_day or not FIRST_DAY <= day <= LAST_DAY:
            return FIRST_DAY <= day <= LAST_DAY
        moment = date.fromordinal(day + EPOCH_ORDINAL)
        if moment.month not in self._months:
            return False
        return bool(self._mask(moment.year, moment.month) >> moment.day & 1)

    def times_on(self, day: int) -> int:
        return self.times if self.has_day(day) else 0

    def day_from(self, day: int) -> int | None:
        """The first matching day that is not before this one."""
        day = max(day, FIRST_DAY)
        if self._every_day or day > LAST_DAY:
            return day if day <= LAST_DAY else None
        start = date.fromordinal(day + EPOCH_ORDINAL)
        year, month, low = start.year, start.month, start.day
        while year <= start.year + GIVE_UP_YEARS and year < 9998:
            if month in self._months:
                mask = self._mask(year, month) >> low << low
                if mask:
                    return date(year, month, (mask & -mask).bit_length() - 1).toordinal() - EPOCH_ORDINAL
            year, month, low = (year, month + 1, 0) if month < 12 else (year + 1, 1, 0)
        return None

    def day_until(self, day: int) -> int | None:
        """The last matching day that is not after this one."""
        day = min(day, LAST_DAY)
        if self._every_day or day < FIRST_DAY:
            return day if day >= FIRST_DAY else None
        start = date.fromordinal(day + EPOCH_ORDINAL)
        year, month, high = start.year, start.month, start.day
        while year >= start.year - GIVE_UP_YEARS and year > 2:
            if month in self._months:
                mask = self._mask(year, month) & ((2 << high) - 1)
                if mask:
                    return date(year, month, mask.bit_length() - 1).toordinal() - EPOCH_ORDINAL
            year, month, high = (year, month - 1, 31) if month > 1 else (year - 1, 12, 31)
        return None

    def days_of_month(self, year: int, month: int) -> int:
        """A bit for each matching day; bit 1 is the first of the month."""
        return self._mask(year, month) if month in self._months else 0

    def _mask(self, year: int, month: int) -> int:
        shape = month_shape(year, month)
        mask = self._shapes.get(shape)
        if mask is None:
            mask = self._shapes[shape] = _days_of_month(self.fields, (shape[0] + 1) % 7, shape[1])
        return mask


def month_shape(year: int, month: int) -> tuple[int, int]:
    """The weekday of its first day (Monday is 0), and how many days it has."""
    first = date(year, month, 1)
    if month == 2:
        return first.weekday(), 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return first.weekday(), 30 if month in (4, 6, 9, 11) else 31


def read_cron(
    expression: object, *, dialect: str | None = None, job_id: UUID | None = None, pointer: str = "/cron"
) -> Cron:
    """The expression, parsed; refused if it is malformed or never fires."""
    if not isinstance(expression, str):
        raise InvalidInput.at(pointer, 'must be a cron expression as text, such as "0 9 * * mon-fri"')
    cron = Cron(parse_cron(expression, dialect=dialect, job_id=job_id, pointer=pointer))
    if cron.day_from(0) is None:
        raise InvalidInput.at(pointer, _never(cron.fields))
    return cron


def _never(fields: CronFields) -> str:
    day, month = fields.words[-3], fields.words[-2]
    return (
        f"never fires: day-of-month {day!r} does not occur in month {month!r}"
        f"{' on such a weekday' if fields.words[-1] != '*' else ''}; did you mean 'L', the last day of the month?"
    )


def times_of_day(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int], unit: int) -> int:
    """A bit for each minute (unit 60) or second (unit 1) of the day."""
    if unit == 60:
        hour_mask, per_hour = sum(1 << minute for minute in minutes), 60
    else:
        minute_mask = sum(1 << second for second in seconds)
        hour_mask, per_hour = sum(minute_mask << 60 * minute for minute in minutes), 3600
    return sum(hour_mask << per_hour * hour for hour in hours)


def _days_of_month(fields: CronFields, first: int, length: int) -> int:
    """A bit for each matching day of a month that begins on weekday `first` (Sunday is 0)."""
    by_date = _by_date(fields, first, length)
    by_weekday = _by_weekday(fields, first, length)
    return by_date & by_weekday if fields.both_days else by_date | by_weekday


def _by_date(fields: CronFields, first: int, length: int) -> int:
    days = {day for day in fields.days if day <= length}
    days |= {length - before for before in fields.days_before_last if before < length}
    days |= {_nearest_workday(day, first, length) for day in fields.days_near if day <= length}
    if fields.last_weekday:
        days.add(_nearest_workday(length, first, length))
    return sum(1 << day for day in days)


def _nearest_workday(day: int, first: int, length: int) -> int:
    """Monday to Friday nearest to this day, within the month."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day


def _by_weekday(fields: CronFields, first: int, length: int) -> int:
    days = {day for day in range(1, length + 1) if (first + day - 1) % 7 in fields.weekdays}
    for weekday, nth in fields.weekdays_nth:
        day = 1 + (weekday - first) % 7 + 7 * (nth - 1)
        if day <= length:
            days.add(day)
    for weekday in fields.weekdays_last:
        days.add(length - (first + length - 1 - weekday) % 7)
    return sum(1 << day for day in days)
