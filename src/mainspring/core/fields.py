"""Readers of single fields: each takes a JSON value and a pointer, and answers what is to be kept or raises InvalidInput."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from mainspring.core.errors import InvalidInput, Problem, TooLarge
from mainspring.core.model import PAYLOAD_BYTES_MAX
from mainspring.core.retry import read_retry
from mainspring.core.times import duration_text, read_duration, read_instant, utc_text

Reader = Callable[[object, str], object]

NAME_MAX = 256
DESCRIPTION_MAX = 10_000
TAGS_MAX = 100
DEPTH_MAX = 100
RETRY_FIELDS = ("max_attempts", "backoff", "initial", "factor", "max", "jitter")
PROBLEMS_MAX = 100
EXPRESSIONS_READ = 100
_HINTED_MAX = 64
_HINTS_MAX = 5

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_encode_payload = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


class Problems:
    """Collects what is wrong, so that a caller hears it all at once; bounded, since an input can be wrong a million times."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.more = 0

    def add(self, pointer: str, detail: str) -> None:
        self.take(InvalidInput.at(pointer, detail))

    def take(self, error: InvalidInput) -> None:
        room = PROBLEMS_MAX - len(self.found)
        self.found += error.problems[:room]
        self.more += max(0, len(error.problems) - room)

    def raise_if_any(self) -> None:
        if self.more:
            self.found.append(Problem("", f"{self.more} further problems are not listed"))
        if self.found:
            raise InvalidInput(self.found)


def pointer_to(name: object) -> str:
    """The JSON pointer of a member of the top level."""
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(name)[:NAME_MAX])
    return "/" + text.replace("~", "~0").replace("/", "~1")


def nearest(name: str, known: Collection[str]) -> str:
    """`; did you mean "…"?`, or nothing."""
    close = difflib.get_close_matches(name, sorted(known), n=1) if len(name) <= _HINTED_MAX else []
    return f'; did you mean "{close[0]}"?' if close else ""


def refuse_unknown(value: Iterable[object], known: Collection[str], pointer: str, problems: Problems) -> None:
    """Names each member that is not known, with the nearest that is."""
    unknown = [name for name in value if name not in known]
    for index, name in enumerate(unknown[:PROBLEMS_MAX]):
        hint = nearest(str(name), known) if index < _HINTS_MAX else ""
        problems.add(pointer + pointer_to(name), "unknown field" + (hint or f"; known are {', '.join(known)}"))
    problems.more += len(unknown[PROBLEMS_MAX:])


def identifier(value: object, pointer: str) -> str:
    """A name that is looked up, logged and put into addresses: no control characters, no blank ends."""
    text = _text(value, pointer, NAME_MAX)
    if not text or text != text.strip():
        raise InvalidInput.at(pointer, "must not be empty and must not begin or end with a blank")
    if _CONTROL.search(text):
        raise InvalidInput.at(pointer, "must not contain control characters")
    return text


def label(value: object, pointer: str) -> str:
    return _text(value, pointer, NAME_MAX)


def description(value: object, pointer: str) -> str:
    return _text(value, pointer, DESCRIPTION_MAX)


def choice(*known: str) -> Reader:
    """One of these words."""

    def read(value: object, pointer: str) -> str:
        if isinstance(value, str) and value in known:
            return value
        hint = nearest(value, known) if isinstance(value, str) else ""
        raise InvalidInput.at(pointer, f"must be one of {', '.join(known)}{hint}")

    return read


def whole(least: int, most: int, more: str = "") -> Reader:
    """A whole number within bounds."""

    def read(value: object, pointer: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidInput.at(pointer, f"must be a whole number from {least} to {most}{more}")
        return value

    return read


def span(value: object, pointer: str) -> object:
    """A duration, kept as it was written."""
    read = read_duration(value, pointer)
    return duration_text(read) if isinstance(value, timedelta) else value


def positive_span(value: object, pointer: str) -> object:
    if read_duration(value, pointer) <= 0:
        raise InvalidInput.at(pointer, "must be longer than nothing")
    return span(value, pointer)


def instant(value: object, pointer: str) -> str:
    """A time, kept in UTC."""
    if isinstance(value, str | datetime):
        try:
            return utc_text(read_instant(value, pointer))
        except OverflowError:
            raise InvalidInput.at(pointer, "lies outside the years 1 to 9999") from None
    raise InvalidInput.at(pointer, 'must be a time as text, such as "2026-12-01T10:00:00Z"')


def text_list(value: object, pointer: str) -> list[str]:
    if not isinstance(value, list | tuple) or len(value) > TAGS_MAX:
        raise InvalidInput.at(pointer, f"must be a list of at most {TAGS_MAX} texts")
    problems = Problems()
    kept = []
    for index, each in enumerate(value):
        try:
            kept.append(identifier(each, f"{pointer}/{index}"))
        except InvalidInput as error:
            problems.take(error)
    problems.raise_if_any()
    return kept


def metadata(value: object, pointer: str) -> object:
    if not isinstance(value, Mapping):
        raise InvalidInput.at(pointer, "must be an object")
    encode_json(value, pointer)
    return value


def retry(value: object, pointer: str) -> object:
    """The `retry` object: each of its fields is tried alone, so that all that is wrong is said."""
    given = members(value, pointer, '{"max_attempts": 3}')
    problems = Problems()
    refuse_unknown(given, RETRY_FIELDS, pointer, problems)
    for name in RETRY_FIELDS:
        if name in given:
            try:
                read_retry({name: given[name]}, pointer)
            except InvalidInput as error:
                problems.take(error)
    problems.raise_if_any()
    return value


def misfire(value: object, pointer: str) -> object:
    return fields_of(
        value,
        pointer,
        {"policy": choice("skip", "once", "all"), "window": optional(positive_span), "limit": whole(1, 10_000)},
        '{"policy": "once"}',
    )


def dst(value: object, pointer: str) -> object:
    known = {"gap": choice("after", "skip", "before"), "fold": choice("first", "second", "both")}
    return fields_of(value, pointer, known, '{"gap": "after", "fold": "first"}')


def expressions(value: object, pointer: str) -> object:
    """One cron expression, or a list of which any may fire."""
    if not isinstance(value, list | tuple):
        return label(value, pointer)
    return [label(each, f"{pointer}/{index}") for index, each in enumerate(value[:EXPRESSIONS_READ])]


def calendar(value: object, pointer: str) -> object:
    """How a job uses a calendar; a name alone stands for `{"name": …}`."""
    if isinstance(value, str):
        return {"name": identifier(value, pointer)}
    known = {
        "name": identifier,
        "roll": choice("skip", "next", "previous", "nearest"),
        "working_day": optional(whole(-23, 23)),
    }
    found = fields_of(value, pointer, known, '{"name": "be-holidays", "roll": "skip"}')
    if "name" not in found:
        raise InvalidInput.at(f"{pointer}/name", "must be the name of a calendar")
    return found


def optional(reader: Reader) -> Reader:
    return lambda value, pointer: None if value is None else reader(value, pointer)


def members(value: object, pointer: str, example: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidInput.at(pointer, f"must be an object such as {example}")
    return value


def fields_of(value: object, pointer: str, known: Mapping[str, Reader], example: str) -> dict[str, object]:
    """An object of known fields, each read by its reader."""
    given = members(value, pointer, example)
    problems = Problems()
    kept: dict[str, object] = {}
    for name, each in given.items():
        reader = known.get(name)
        if reader is None:
            continue
        try:
            kept[name] = reader(each, f"{pointer}/{name}")
        except InvalidInput as error:
            problems.take(error)
    if len(kept) < len(given):
        refuse_unknown(given, tuple(known), pointer, problems)
    problems.raise_if_any()
    return kept


def encode_payload(value: object, pointer: str = "/payload") -> bytes:
    """The arguments as compact JSON: an object by name or a list by position, at most 256 KiB."""
    if not isinstance(value, Mapping | list | tuple):
        raise InvalidInput.at(pointer, "must be an object of arguments by name, or a list of them by position")
    encoded = encode_json(value, pointer)
    if len(encoded) > PAYLOAD_BYTES_MAX:
        raise TooLarge(
            f"{pointer}: {len(encoded)} bytes; a payload holds at most 256 KiB: store it and send its address"
        )
    return encoded


def encode_json(value: object, pointer: str) -> bytes:
    """Compact JSON that every store can keep; refuses what JSON, UTF-8 or a store cannot hold."""
    try:
        text = _encode_payload(value)
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidInput.at(pointer, "contains a lone surrogate, which is no character") from None
    except RecursionError:
        raise InvalidInput.at(pointer, f"is nested deeper than {DEPTH_MAX} levels") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput.at(pointer, f"is no JSON: {error}") from None
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise InvalidInput.at(pointer, "contains the character NUL, which databases cannot hold")
    if text.count("[") + text.count("{") > DEPTH_MAX and _depth(value) > DEPTH_MAX:
        raise InvalidInput.at(pointer, f"is nested deeper than {DEPTH_MAX} levels")
    return encoded


def encode_document(document: Mapping[str, object]) -> str | None:
    """The document as it is stored: compact, sorted; None if it says nothing."""
    return _encode_sorted(document) if document else None


def _text(value: object, pointer: str, longest: int) -> str:
    if not isinstance(value, str):
        raise InvalidInput.at(pointer, "must be a text")
    if len(value) > longest:
        raise InvalidInput.at(pointer, f"has {len(value)} characters; at most {longest} are kept")
    if _UNSTORABLE.search(value):
        raise InvalidInput.at(pointer, "contains NUL or a lone surrogate, which databases cannot hold")
    return value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [inner for each in level for inner in _inside(each) if isinstance(inner, Mapping | list | tuple)]
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, Sequence) else ()
