"""Instants and durations as text, and back.

Text is RFC 3339 with an offset; a naive time is refused, since nobody can say which instant it
means. Durations are seconds as a number, "90s", "1h30m", "7d", or ISO 8601.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from mainspring.core.errors import InvalidInput
from mainspring.core.model import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from mainspring.core.zone import Zone, read_zone

LONGEST: Duration = 36_525 * DAY

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - read as UTC, formatted with a Z
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1
_MILLISECOND = 1_000
_LONGEST_TEXT = 64

_DATE_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|us|w|d|h|m|s)\s*", re.ASCII)
_ISO = re.compile(r"P(?:(\d+)W|(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?)", re.ASCII)
_UNITS: dict[str, Duration] = {
    "w": 7 * DAY,
    "d": DAY,
    "h": HOUR,
    "m": MINUTE,
    "s": SECOND,
    "ms": _MILLISECOND,
    "us": 1,
}
_FORMS = 'seconds as a number, or a text such as "90s", "5m", "1h30m", "7d" or "PT5M"'


def utc_text(instant: Instant) -> str:
    """RFC 3339 with a Z, in milliseconds, or microseconds where there are any."""
    moment = _NAIVE_EPOCH + timedelta(microseconds=instant)
    return moment.isoformat(timespec="microseconds" if instant % _MILLISECOND else "milliseconds") + "Z"


def local_text(instant: Instant, timezone: str | Zone) -> str:
    """RFC 3339 in the zone's local time with its offset."""
    zone = read_zone(timezone, "/timezone") if isinstance(timezone, str) else timezone
    moment = (_EPOCH + timedelta(microseconds=instant)).astimezone(zone.info)
    if instant % SECOND == 0:
        return moment.isoformat(timespec="seconds")
    return moment.isoformat(timespec="microseconds" if instant % _MILLISECOND else "milliseconds")


def read_instant(value: object, pointer: str) -> Instant:
    """The instant that an RFC 3339 text with an offset (or an aware datetime) names."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise _naive(pointer, value.isoformat())
        return _within((value - _EPOCH) // _MICROSECOND, pointer)
    if not isinstance(value, str):
        raise InvalidInput.at(pointer, 'must be a time as text, such as "2026-12-01T10:00:00Z"')
    if len(value) > _LONGEST_TEXT:
        raise InvalidInput.at(pointer, f'is no time: {len(value)} characters; write it as "2026-12-01T10:00:00Z"')
    return _instant_of(value.strip(), pointer)


def _instant_of(text: str, pointer: str) -> Instant:
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise InvalidInput.at(pointer, f'{text!r} is no RFC 3339 time; write it as "2026-12-01T10:00:00Z"')
    date, minutes, seconds, fraction, offset = match.groups()
    if offset is None:
        raise _naive(pointer, text)
    leap = seconds == "60"
    offset = "+00:00" if offset in "Zz" else offset
    clean = f"{date}T{minutes}:{'59' if leap else seconds or '00'}{fraction or ''}{offset}"
    try:
        moment = datetime.fromisoformat(clean)
    except ValueError as error:
        raise InvalidInput.at(pointer, f"{text!r} is no time that exists: {error}") from None
    return _within((moment - _EPOCH) // _MICROSECOND + (SECOND if leap else 0), pointer)


def _within(instant: Instant, pointer: str) -> Instant:
    if not _FIRST <= instant <= _LAST:
        raise InvalidInput.at(pointer, "lies outside the years 2 to 9998")
    return instant


def _naive(pointer: str, text: str) -> InvalidInput:
    return InvalidInput.at(
        pointer,
        f'{text!r} has no offset, so it names no instant; add one: "{text}Z" for UTC, or such as "{text}+02:00"',
    )


def read_duration(value: object, pointer: str) -> Duration:
    """The length in microseconds; never negative."""
    if isinstance(value, timedelta):
        return _bounded(value / timedelta(seconds=1), pointer)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInput.at(pointer, f"must be a duration: {_FORMS}")
    if isinstance(value, str):
        return _duration_of(value.strip(), pointer)
    return _bounded(value, pointer)


def duration_text(duration: Duration) -> str:
    """The shortest text that reads back as the same duration, such as "1h30m"."""
    parts = []
    rest = duration
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _duration_of(text: str, pointer: str) -> Duration:
    if len(text) > _LONGEST_TEXT:
        raise InvalidInput.at(pointer, f"is no duration: {len(text)} characters; write {_FORMS}")
    if text.startswith("-"):
        raise InvalidInput.at(pointer, f"{text!r} is negative; a duration is never negative")
    if _NUMBER.fullmatch(text):
        return _bounded(float(text), pointer)
    if text[:1] == "P":
        return _iso_duration_of(text, pointer)
    position, total = 0, 0.0
    for match in _PART.finditer(text):
        if match.start() != position:
            break
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    if not text or position != len(text):
        raise InvalidInput.at(pointer, f"{text!r} is no duration; write {_FORMS}")
    return _bounded(total / SECOND, pointer)


def _iso_duration_of(text: str, pointer: str) -> Duration:
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        hint = "; months and years have no fixed length: use cron or rrule" if re.search(r"^P[^T]*[YM]", text) else ""
        raise InvalidInput.at(pointer, f'{text!r} is no ISO 8601 duration such as "PT5M"{hint}')
    weeks, days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return _bounded(weeks * 604_800 + days * 86_400 + hours * 3_600 + minutes * 60 + seconds, pointer)


def _bounded(seconds: float, pointer: str) -> Duration:
    if seconds < 0:
        raise InvalidInput.at(pointer, f"{seconds} is negative; a duration is never negative")
    if not seconds <= LONGEST // SECOND:  # also what is not a number
        raise InvalidInput.at(pointer, "is no finite number of seconds up to 100 years")
    return round(seconds * SECOND)
