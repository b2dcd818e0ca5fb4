"""Arguments and results as JSON, typed by a function's annotations. Data never names code: nothing is imported by it."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mainspring.core.errors import InvalidInput, Problem, TooLarge
from mainspring.core.model import PAYLOAD_BYTES_MAX

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_PATH = re.compile(r" - at `(?:key in )?\$([^`]*)`$")
_MISSING = re.compile(r"Object missing required field `([^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]+)`")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    annotation: Any
    required: bool
    kind: str
    default: Any


class ArgumentCodec:
    """Binds, checks, encodes and decodes the arguments of one function."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self._name = name
        self.parameters, self.open_ended = read_parameters(function, name)
        positional = [parameter for parameter in self.parameters if parameter.kind != "keyword"]
        self._positional = tuple(parameter.name for parameter in positional)
        self._count = len(self._positional)
        self._names = tuple(parameter.name for parameter in self.parameters)
        self._decoder = _decoder_of(self.parameters, open_ended=self.open_ended)
        self._plain = self._count == len(self.parameters) and not self.open_ended

    def encode(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """JSON by name; InvalidInput names the argument and the cure."""
        given = self._bind(args, kwargs)
        try:
            payload = msgspec.json.encode(given, enc_hook=to_plain)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise InvalidInput(_unencodable(given)) from None
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise TooLarge(
                f"the arguments of {self._name} take {len(payload)} bytes, the bound is {PAYLOAD_BYTES_MAX} (256 KiB); "
                "store the data elsewhere and pass a reference to it"
            )
        self._check(payload)
        return payload

    def decode(self, payload: bytes) -> Arguments:
        """The arguments to call the function with; raises InvalidInput where the payload does not fit it."""
        if payload == b"{}" and not self.parameters:
            return (), {}
        try:
            if payload[:1] == b"[":
                payload = msgspec.json.encode(self._bind(msgspec.json.decode(payload), {}))
            decoded = self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise InvalidInput([self._problem(error)]) from None
        values = msgspec.structs.astuple(decoded)
        if self._plain:
            return values, {}
        named = dict(zip(self._names[self._count :], values[self._count :], strict=True))
        if self.open_ended:
            extra = msgspec.json.decode(payload)
            named.update((key, value) for key, value in extra.items() if key not in self._names)
        return values[: self._count], named

    def _bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        if len(args) > self._count:
            raise InvalidInput.at(
                f"/payload/{self._count}",
                f"{self._name} takes at most {self._count} positional arguments, not {len(args)}; it is {self._shape()}",
            )
        given = dict(zip(self._positional, args, strict=False))
        twice = [name for name in kwargs if name in given]
        if twice:
            raise InvalidInput.at(f"/payload/{twice[0]}", "is given by position and by name; leave one out")
        given.update(kwargs)
        return given

    def _check(self, payload: bytes) -> None:
        try:
            self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise InvalidInput([self._problem(error)]) from None

    def _problem(self, error: msgspec.MsgspecError) -> Problem:
        text = str(error)
        path = _PATH.search(text)
        pointer = "/payload" + (_pointer_of(path[1]) if path else "")
        message = _PATH.sub("", text)
        if missing := _MISSING.fullmatch(message):
            return Problem(f"{pointer}/{missing[1]}", f"is missing; {self._name} is {self._shape()}")
        if unknown := _UNKNOWN.fullmatch(message):
            return Problem(f"{pointer}/{unknown[1]}", f"is no argument; {self._name} is {self._shape()}")
        return Problem(pointer, f"{message[:1].lower()}{message[1:]}; {self._name} is {self._shape()}")

    def _shape(self) -> str:
        shown = ", ".join(each.name if each.required else f"{each.name}=…" for each in self.parameters)
        return f"{self._name}({shown}{', **…' if self.open_ended else ''})"


class ResultCodec:
    """Encodes what a function returns and gives it back typed by its annotation."""

    def __init__(self, function: Callable[..., object]) -> None:
        annotation = _hints(function).get("return", Any)
        self._decoder = _typed_decoder(Any if annotation is None else annotation)

    def encode(self, value: object) -> bytes:
        return msgspec.json.encode(value, enc_hook=to_plain)

    def decode(self, result: bytes) -> Any:
        return self._decoder.decode(result)


def read_parameters(function: Callable[..., object], name: str) -> tuple[tuple[Parameter, ...], bool]:
    """The function's parameters, and whether it takes any others by name."""
    hints = _hints(function)
    parameters, open_ended = [], False
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            raise InvalidInput.at(
                "", f"task {name} takes *{each.name}, but arguments travel by name; take a list instead"
            )
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            open_ended = True
            continue
        kind = "keyword" if each.kind is inspect.Parameter.KEYWORD_ONLY else "positional"
        required = each.default is inspect.Parameter.empty
        parameters.append(Parameter(each.name, hints.get(each.name, Any), required, kind, each.default))
    return tuple(parameters), open_ended


def to_plain(value: object) -> object:
    """For msgspec: how to encode what it does not know; pydantic's models by their own rules."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    raise TypeError(f"objects of type {type(value).__name__} have no form in JSON")


def from_plain(wanted: type, value: object) -> object:
    """For msgspec: how to decode into what it does not know."""
    validate = getattr(wanted, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(value, wanted):
        return value
    raise ValueError(f"Expected `{wanted.__name__}`, got `{type(value).__name__}`")


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def _decoder_of(parameters: Sequence[Parameter], *, open_ended: bool) -> msgspec.json.Decoder[Any]:
    fields: list[Any] = []
    for each in parameters:
        annotation = each.annotation if _is_supported(each.annotation) else Any
        if each.required:
            fields.append((each.name, annotation))
        else:
            fields.append((each.name, annotation, msgspec.field(default_factory=_giver_of(each.default))))
    arguments = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=not open_ended, kw_only=True)
    return msgspec.json.Decoder(arguments, dec_hook=from_plain)


def _giver_of(default: object) -> Callable[[], object]:
    return lambda: default


def _is_supported(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation, dec_hook=from_plain)
    except (TypeError, ValueError, NameError):
        return False
    return True


def _typed_decoder(annotation: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(annotation if _is_supported(annotation) else Any, dec_hook=from_plain)


def _unencodable(given: Mapping[str, object]) -> list[Problem]:
    problems = []
    for name, value in given.items():
        try:
            msgspec.json.encode(value, enc_hook=to_plain)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            problems.append(Problem(f"/payload/{name}", f"cannot travel as JSON: {error}; pass plain data instead"))
    return problems or [Problem("/payload", "cannot travel as JSON")]


def _pointer_of(path: str) -> str:
    return "".join(f"/{match[1] or match[2]}" for match in _STEP.finditer(path))
