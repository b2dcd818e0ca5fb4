"""What a cron expression means, in one sentence made from its parsed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from mainspring.core.cron import read_cron
from mainspring.core.cron_parse import CronFields

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_MOST_TIMES = 6


def explain(expression: str, *, dialect: str | None = None, job_id: UUID | None = None) -> str:
    """One sentence, such as "At 09:00, Monday to Friday"; a bad expression is refused as `read_cron` does."""
    return explain_fields(read_cron(expression, dialect=dialect, job_id=job_id).fields)


def explain_fields(fields: CronFields) -> str:
    sentence = ", ".join(part for part in (_time(fields), _days(fields), _months(fields)) if part)
    return sentence[0].upper() + sentence[1:]


def _time(fields: CronFields) -> str:
    plain_seconds = fields.seconds == (0,)
    count = len(fields.seconds) * len(fields.minutes) * len(fields.hours)
    if count <= _MOST_TIMES:
        times = [
            f"{hour:02}:{minute:02}" if plain_seconds else f"{hour:02}:{minute:02}:{second:02}"
            for hour in fields.hours
            for minute in fields.minutes
            for second in fields.seconds
        ]
        return f"at {_listed(times)}"
    minutes = _minutes(fields)
    if plain_seconds:
        return minutes
    seconds = _paced(fields.seconds, 60, "second") or f"at second{_s(fields.seconds)} {_spans(fields.seconds)}"
    if len(fields.minutes) == 60 and len(fields.hours) == 24:
        return seconds if seconds.startswith("every") else f"{seconds} of every minute"
    return f"{seconds}, {minutes}"


def _minutes(fields: CronFields) -> str:
    hours = _hours(fields)
    pace = _paced(fields.minutes, 60, "minute")
    if pace:
        return pace if len(fields.hours) == 24 else f"{pace} {hours}"
    if fields.minutes == (0,):
        return _paced(fields.hours, 24, "hour") or f"on the hour {hours}"
    at = f"at minute{_s(fields.minutes)} {_spans(fields.minutes)}"
    return f"{at} of {_paced(fields.hours, 24, 'hour')}" if _paced(fields.hours, 24, "hour") else f"{at} {hours}"


def _hours(fields: CronFields) -> str:
    hours = fields.hours
    if len(hours) > 1 and _consecutive(hours):
        return f"from {hours[0]:02}:00 to {hours[-1]:02}:59"
    return f"in hour{_s(hours)} {_spans(hours)}"


def _days(fields: CronFields) -> str:
    by_date, by_weekday = _dates(fields), _weekdays(fields)
    every_date, every_weekday = len(fields.days) == 31, len(fields.weekdays) == 7
    if every_date and every_weekday:
        return ""
    if not fields.both_days:
        return f"{by_date} or {by_weekday}"
    if every_date:
        return by_weekday
    return by_date if every_weekday else f"{by_date} if it is {by_weekday.removeprefix('on ')}"


def _dates(fields: CronFields) -> str:
    parts = [f"day{_s(fields.days)} {_spans(fields.days)}"] if fields.days else []
    parts += [
        "the last day" if before == 0 else f"the day {before} before the last" for before in fields.days_before_last
    ]
    parts += [f"the weekday nearest to day {day}" for day in fields.days_near]
    if fields.last_weekday:
        parts.append("the last weekday (Monday to Friday)")
    return f"on {_listed(parts)} of the month"


def _weekdays(fields: CronFields) -> str:
    monday_first = sorted(fields.weekdays, key=lambda number: (number + 6) % 7)
    parts = []
    if monday_first:
        parts.append(_spans([(number + 6) % 7 for number in monday_first], lambda number: _WEEKDAYS[(number + 1) % 7]))
    parts += [f"the {_ORDINALS[nth]} {_WEEKDAYS[weekday]} of the month" for weekday, nth in fields.weekdays_nth]
    parts += [f"the last {_WEEKDAYS[weekday]} of the month" for weekday in fields.weekdays_last]
    return f"on {_listed(parts)}"


def _months(fields: CronFields) -> str:
    if len(fields.months) == 12:
        return ""
    return f"in {_spans(fields.months, lambda number: _MONTHS[number - 1])}"


def _paced(numbers: Sequence[int], size: int, name: str) -> str | None:
    """ "every 15 minutes", where the numbers are evenly spread over the whole field."""
    if len(numbers) == size:
        return f"every {name}"
    step = size // len(numbers)
    if len(numbers) > 1 and tuple(numbers) == tuple(range(0, size, step)) and size % step == 0:
        return f"every {step} {name}s"
    return None


def _spans(numbers: Sequence[int], name: Callable[[int], str] = str) -> str:
    """The numbers with runs of three and more drawn together."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = []
    for span in spans:
        words += [f"{name(span[0])} to {name(span[-1])}"] if len(span) > 2 else [name(number) for number in span]
    return _listed(words)


def _consecutive(numbers: Sequence[int]) -> bool:
    return numbers[-1] - numbers[0] == len(numbers) - 1


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _s(numbers: Sequence[int]) -> str:
    return "" if len(numbers) == 1 else "s"
