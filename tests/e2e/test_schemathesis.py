"""Generated requests, right and wrong, against every operation: no 500, and no answer outside the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS, load_all_checks

from mainspring.api.server import openapi
from tests.support.live_http import live_server

# What a schema cannot say (exactly one of, at most one of, a zone that exists) makes right-looking input wrong.
LEFT_OUT = {"positive_data_acceptance"}
load_all_checks()
WANTED = [check for check in CHECKS.get_all() if check.__name__ not in LEFT_OUT]


@schemathesis.serializer("application/x-ndjson")
def lines(_context: object, value: object) -> bytes:
    """A text as it is: hardly ever lines of JSON, and then refused."""
    return str(value).encode("utf-8", "replace")


schema = schemathesis.openapi.from_dict(openapi())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with live_server() as found:
        yield found


@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_keeps_to_the_document(case: Any, address: str) -> None:
    if case.operation.label == "GET /v1/runs/{id}/logs":
        (case.query or {}).pop("follow", None)
    case.call_and_validate(base_url=address, checks=WANTED, timeout=10)
