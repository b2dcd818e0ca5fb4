"""What a task's arguments look like, as JSON that other processes can check a payload against without its code."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec

from mainspring.core.errors import Problem
from mainspring.tasks.codec import Parameter

Schema = Mapping[str, object]

_POINTER_ESCAPES = str.maketrans({"~": "~0", "/": "~1"})
_DEPTH_MAX = 100


def signature_text(parameters: Sequence[Parameter], *, open_ended: bool) -> str:
    """The signature as it is registered in the store."""
    described = [
        {"name": each.name, "required": each.required, "kind": each.kind, "schema": _schema_of(each.annotation)}
        for each in parameters
    ]
    if open_ended:
        described.append({"name": "**", "required": False, "kind": "any", "schema": {}})
    return json.dumps({"parameters": described}, separators=(",", ":"), sort_keys=True)


def check_payload(signature: str, payload: object) -> list[Problem]:
    """What does not fit, each with a pointer and the cure; a list is taken by position."""
    parameters = _read(signature)
    if isinstance(payload, list):
        payload, problems = _by_position(parameters, payload)
        if problems:
            return problems
    if not isinstance(payload, Mapping):
        return [Problem("/payload", "must be an object of arguments by name, or a list of them by position")]
    known = {str(each["name"]): each for each in parameters}
    problems = []
    for name, value in payload.items():
        if name in known and name != "**":
            schema = known[name]["schema"]
            assert isinstance(schema, Mapping)
            problems += _check(value, schema, schema, f"/payload/{name.translate(_POINTER_ESCAPES)}", 0)
        elif "**" not in known:
            names = ", ".join(known) or "none"
            problems.append(Problem(f"/payload/{name.translate(_POINTER_ESCAPES)}", f"is no argument; known: {names}"))
    missing = [name for name, each in known.items() if each["required"] and name not in payload]
    return problems + [Problem(f"/payload/{name}", "is missing; the task has no default for it") for name in missing]


@lru_cache(maxsize=1024)
def _read(signature: str) -> tuple[dict[str, object], ...]:
    return tuple(json.loads(signature)["parameters"])


def _by_position(
    parameters: Sequence[Mapping[str, object]], values: list[object]
) -> tuple[dict[str, object], list[Problem]]:
    names = [str(each["name"]) for each in parameters if each["kind"] == "positional"]
    if len(values) > len(names):
        return {}, [Problem(f"/payload/{len(names)}", f"is one too many; by position the task takes {len(names)}")]
    return dict(zip(names, values, strict=False)), []


def _schema_of(annotation: object) -> dict[str, object]:
    try:
        return msgspec.json.schema(annotation, schema_hook=_foreign_schema)
    except (TypeError, ValueError, NotImplementedError):
        return {}


def _foreign_schema(wanted: type) -> dict[str, object]:
    describe = getattr(wanted, "model_json_schema", None)
    return describe() if describe is not None else {}


def _check(value: object, schema: Schema, root: Schema, pointer: str, depth: int) -> list[Problem]:
    """A bounded part of JSON Schema: what annotations turn into. What it does not know it lets pass to the worker."""
    if depth > _DEPTH_MAX:
        return [Problem(pointer, "is nested too deeply")]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _check(value, _resolve(reference, root), root, pointer, depth + 1)
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        return _check_choices(value, choices, root, pointer, depth)
    if "const" in schema and value != schema["const"]:
        return [Problem(pointer, f"must be {json.dumps(schema['const'])}")]
    allowed = schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        return [Problem(pointer, "must be one of " + ", ".join(json.dumps(each) for each in allowed))]
    kind = schema.get("type")
    if isinstance(kind, str) and not _is_of(kind, value):
        return [Problem(pointer, f"must be {_WORDS.get(kind, kind)}, not {_kind_of(value)}")]
    return [*_check_bounds(value, schema, pointer), *_check_inside(value, schema, root, pointer, depth)]


def _check_choices(value: object, choices: list[Schema], root: Schema, pointer: str, depth: int) -> list[Problem]:
    tried = [_check(value, choice, root, pointer, depth + 1) for choice in choices]
    if any(not problems for problems in tried):
        return []
    deeper = [problems for problems in tried if problems[0].pointer != pointer]
    if deeper:
        return deeper[0]
    return [Problem(pointer, " or ".join(dict.fromkeys(problems[0].detail for problems in tried)))]


def _check_inside(value: object, schema: Schema, root: Schema, pointer: str, depth: int) -> list[Problem]:
    if isinstance(value, Mapping):
        return _check_object(value, schema, root, pointer, depth)
    if isinstance(value, list):
        return _check_list(value, schema, root, pointer, depth)
    return []


def _check_object(value: Mapping[str, object], schema: Schema, root: Schema, pointer: str, depth: int) -> list[Problem]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    problems = [
        Problem(f"{pointer}/{name}", "is missing")
        for name in (required if isinstance(required, list) else [])
        if name not in value
    ]
    rest = schema.get("additionalProperties")
    for name, each in value.items():
        inner = properties.get(name, rest)
        at = f"{pointer}/{name.translate(_POINTER_ESCAPES)}"
        if inner is False:
            problems.append(Problem(at, "is unknown; leave it out"))
        elif isinstance(inner, Mapping):
            problems += _check(each, inner, root, at, depth + 1)
    return problems


def _check_list(value: list[object], schema: Schema, root: Schema, pointer: str, depth: int) -> list[Problem]:
    heads = schema.get("prefixItems")
    heads = heads if isinstance(heads, list) else []
    items = schema.get("items")
    problems = []
    for index, each in enumerate(value):
        inner = heads[index] if index < len(heads) else items
        if isinstance(inner, Mapping):
            problems += _check(each, inner, root, f"{pointer}/{index}", depth + 1)
    lowest, highest = schema.get("minItems"), schema.get("maxItems")
    if isinstance(lowest, int) and len(value) < lowest:
        problems.append(Problem(pointer, f"must have at least {lowest} items"))
    if isinstance(highest, int) and len(value) > highest:
        problems.append(Problem(pointer, f"must have at most {highest} items"))
    return problems


def _check_bounds(value: object, schema: Schema, pointer: str) -> list[Problem]:
    problems = []
    if isinstance(value, int | float) and not isinstance(value, bool):
        problems += [
            Problem(pointer, f"must be {word} {bound:g}")
            for name, word, holds in _NUMBER_BOUNDS
            if isinstance(bound := schema.get(name), int | float) and not holds(value, bound)
        ]
    if isinstance(value, str):
        shortest, longest, pattern = schema.get("minLength"), schema.get("maxLength"), schema.get("pattern")
        if isinstance(shortest, int) and len(value) < shortest:
            problems.append(Problem(pointer, f"must have at least {shortest} characters"))
        if isinstance(longest, int) and len(value) > longest:
            problems.append(Problem(pointer, f"must have at most {longest} characters"))
        if isinstance(pattern, str) and not re.search(pattern, value):
            problems.append(Problem(pointer, f"must match {pattern}"))
    return problems


def _resolve(reference: str, root: Schema) -> Schema:
    found: object = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _is_of(kind: str, value: object) -> bool:
    match kind:
        case "integer":
            whole = isinstance(value, float) and value.is_integer()
            return (isinstance(value, int) and not isinstance(value, bool)) or whole
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return _kind_of(value) == kind


def _kind_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_NUMBER_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "at least", operator.ge),
    ("maximum", "at most", operator.le),
    ("exclusiveMinimum", "more than", operator.gt),
    ("exclusiveMaximum", "less than", operator.lt),
)
