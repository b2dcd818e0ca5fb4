"""The OpenAPI document holds together and says what the server takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mainspring.api.schemas import COMPONENTS
from mainspring.api.server import all_routes, openapi
from mainspring.api.time_schemas import TIME_COMPONENTS
from mainspring.client.views import job_fields
from mainspring.core.submission import DEFAULTS, NOT_OFFERED


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from nodes(each)


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    document = openapi()
    named = {node["$ref"].rsplit("/", 1)[1] for node in nodes(document) if "$ref" in node}
    assert named == {*COMPONENTS, *TIME_COMPONENTS}


def test_every_operation_documents_its_failures_as_problems() -> None:
    paths: Any = openapi()["paths"]
    for methods in paths.values():
        for method, operation in methods.items():
            answers = operation["responses"]
            assert {"403", "500", "503", "default"} <= set(answers)
            for status, answer in answers.items():
                if status == "default" or int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"]
            if method == "post":
                assert "Idempotency-Key" in {each["name"] for each in operation["parameters"]}


def test_a_job_is_described_field_by_field() -> None:
    taken: Any = COMPONENTS["JobInput"]["properties"]
    assert set(taken) == set(DEFAULTS)
    for name in NOT_OFFERED:
        assert "null" in str(taken[name])
    shown: Any = COMPONENTS["Job"]["properties"]
    assert set(DEFAULTS) <= set(shown)
    assert callable(job_fields)


def test_operations_are_named_once() -> None:
    names = [route.name for route in all_routes()]
    assert len(names) == len(set(names))
