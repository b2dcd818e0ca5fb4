"""Arguments travel as JSON by name, typed by annotations; what does not fit is refused with the field and the cure."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from mainspring.core.errors import InvalidInput, TooLarge
from mainspring.tasks.codec import ArgumentCodec, ResultCodec


@dataclass
class Address:
    street: str
    number: int = 1


class Point(msgspec.Struct):
    x: int
    y: int


class Model:
    """Stands for pydantic's models: the same three doors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def model_dump(self, mode: str) -> dict[str, str]:
        assert mode == "json"
        return {"name": self.name}

    @classmethod
    def model_validate(cls, value: dict[str, str]) -> "Model":
        if "name" not in value:
            raise ValueError("name is missing")
        return cls(value["name"])


def send(to: str, body: str, *, copies: int = 1, tags: list[str] | None = None) -> str:
    return f"{to}{body}{copies}{tags}"


def rich(
    when: datetime, money: Decimal, where: Address, point: Point, key: uuid.UUID, raw: bytes, model: Model
) -> None: ...


def refused(codec: ArgumentCodec, *args: object, **kwargs: object) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as caught:
        codec.encode(args, kwargs)
    return caught.value.problems[0].pointer, caught.value.problems[0].detail


def test_only_what_was_given_travels() -> None:
    assert ArgumentCodec(send, "send").encode(("a", "b"), {}) == b'{"to":"a","body":"b"}'


def test_decoded_arguments_call_the_function() -> None:
    args, kwargs = ArgumentCodec(send, "send").decode(b'{"body":"b","to":"a","copies":2}')
    assert send(*args, **kwargs) == "ab2None"


def test_a_list_is_taken_by_position() -> None:
    args, kwargs = ArgumentCodec(send, "send").decode(b'["a","b"]')
    assert (args, kwargs) == (("a", "b"), {"copies": 1, "tags": None})


def test_rich_types_come_back_as_they_went() -> None:
    given = (
        datetime(2026, 1, 2, tzinfo=UTC),
        Decimal("1.10"),
        Address("x"),
        Point(1, 2),
        uuid.UUID(int=7),
        b"\x00\xff",
        Model("m"),
    )
    codec = ArgumentCodec(rich, "rich")
    assert codec.decode(codec.encode(given, {})) == (given, {})


def test_a_wrong_type_names_the_argument() -> None:
    pointer, detail = refused(ArgumentCodec(send, "send"), 1, "b")
    assert pointer == "/payload/to"
    assert "`str`" in detail
    assert "send(to, body, copies=…, tags=…)" in detail


def test_a_wrong_type_inside_is_pointed_at() -> None:
    assert refused(ArgumentCodec(send, "send"), "a", "b", tags=["x", 1])[0] == "/payload/tags/1"


def test_a_missing_argument_is_named() -> None:
    pointer, detail = refused(ArgumentCodec(send, "send"), "a")
    assert pointer == "/payload/body"
    assert detail.startswith("is missing")


def test_an_unknown_argument_is_named() -> None:
    assert refused(ArgumentCodec(send, "send"), "a", "b", bdoy="x")[0] == "/payload/bdoy"


def test_too_many_positional_arguments_are_refused() -> None:
    assert "at most 2 positional" in refused(ArgumentCodec(send, "send"), "a", "b", 3)[1]


def test_the_same_argument_twice_is_refused() -> None:
    assert refused(ArgumentCodec(send, "send"), "a", "b", to="c")[0] == "/payload/to"


def test_what_has_no_json_form_is_refused() -> None:
    def anything(value: object) -> None: ...

    pointer, detail = refused(ArgumentCodec(anything, "anything"), object())
    assert pointer == "/payload/value"
    assert "plain data" in detail


def test_a_large_payload_is_refused() -> None:
    codec = ArgumentCodec(send, "send")
    fitting = "x" * (256 * 1024 - len(b'{"to":"a","body":""}'))
    assert len(codec.encode(("a", fitting), {})) == 256 * 1024
    with pytest.raises(TooLarge, match="256 KiB"):
        codec.encode(("a", fitting + "x"), {})


def test_open_ended_functions_take_other_names() -> None:
    def anything(first: int, **rest: object) -> None: ...

    codec = ArgumentCodec(anything, "anything")
    assert codec.decode(codec.encode((1,), {"other": "x"})) == ((1,), {"other": "x"})


def test_variadic_functions_are_refused() -> None:
    def variadic(*values: int) -> None: ...

    with pytest.raises(InvalidInput, match="take a list instead"):
        ArgumentCodec(variadic, "variadic")


def test_annotations_that_cannot_be_read_leave_the_argument_untyped() -> None:
    class Foreign: ...

    def odd(value: "int | Foreign", other: int = 1) -> None: ...

    codec = ArgumentCodec(odd, "odd")
    assert codec.decode(codec.encode(("text",), {})) == (("text", 1), {})


def test_results_are_typed_by_the_return_annotation() -> None:
    def where() -> Address:
        return Address("x")

    codec = ResultCodec(where)
    assert codec.decode(codec.encode(Address("x", 2))) == Address("x", 2)


def test_results_without_annotation_come_back_as_json() -> None:
    def bare() -> object:
        return None

    assert ResultCodec(bare).decode(b'{"a":[1]}') == {"a": [1]}
