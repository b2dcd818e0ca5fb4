"""Bodies read as a stream within their bounds, and turned into JSON values."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import ClientDisconnect, Request

from mainspring.api.problems import Refused
from mainspring.core.errors import InvalidInput, Problem, TooLarge
from mainspring.core.fields import PROBLEMS_MAX
from mainspring.core.model import BATCH_JOBS_MAX

MEBIBYTE = 1024 * 1024
BODY_BYTES_MAX = 4 * MEBIBYTE
BATCH_BYTES_MAX = 64 * MEBIBYTE
SECONDS_MAX = 10.0
SLOWEST_BYTES_PER_SECOND = 256 * 1024
LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl")

_decode = msgspec.json.Decoder().decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


async def read_bytes(request: Request, most: int) -> bytes:
    """The body, never more of it than its bound."""
    if request.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Refused(415, "a Content-Encoding is not supported; send the body as it is")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:18]) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(SECONDS_MAX + most / SLOWEST_BYTES_PER_SECOND):
            return await _collect(request, most)
    except TimeoutError:
        raise Refused(408, "the body came too slowly", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise Refused(400, "the connection was closed before the body was complete") from None


async def _collect(request: Request, most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        chunks.append(chunk)
    return b"".join(chunks)


def media_type(request: Request) -> str:
    """The media type without its parameters; JSON where none is named."""
    given, _, parameters = request.headers.get("content-type", "application/json").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if charset.startswith("charset=") and charset not in ("charset=utf-8", "charset=utf8", "charset=us-ascii"):
        raise Refused(415, "JSON is sent in UTF-8")
    return given.strip().lower()


def require_json(kind: str) -> None:
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused(415, f"the body must be application/json, not {kind[:80] or 'nothing'}")


def decode(body: bytes, pointer: str = "") -> object:
    """The JSON value of a whole body."""
    try:
        return _decode(body)
    except RecursionError:
        raise InvalidInput.at(pointer, "is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise InvalidInput.at(pointer, f"is no JSON: {error}") from None


def decode_batch(body: bytes, kind: str) -> list[object]:
    """The members of an array, or the lines of newline-delimited JSON."""
    if kind in LINES:
        parts = [line for line in body.split(b"\n") if line.strip()]
    else:
        require_json(kind)
        parts = [bytes(part) for part in _array(body)]
    if len(parts) > BATCH_JOBS_MAX:
        raise TooLarge(f"a batch holds at most {BATCH_JOBS_MAX} jobs; this one has {len(parts)}: split it")
    found: list[object] = []
    problems: list[Problem] = []
    for index, part in enumerate(parts):
        try:
            found.append(decode(part, f"/{index}"))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems[:PROBLEMS_MAX])
    return found


def _array(body: bytes) -> list[msgspec.Raw]:
    try:
        return _split(body)
    except RecursionError:
        raise InvalidInput.at("", "is nested too deeply") from None
    except (ValueError, OverflowError) as error:
        raise InvalidInput.at("", f"must be a JSON array of jobs, or one job a line: {error}") from None


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body is larger than {most // MEBIBYTE} MiB")
