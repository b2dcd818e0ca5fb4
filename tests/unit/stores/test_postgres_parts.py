"""What of the PostgreSQL store needs no server: its address, its SQL, its filters, what goes into a hint."""

from __future__ import annotations

import pytest

from mainspring.core.errors import InvalidInput
from mainspring.core.states import State
from mainspring.ports.store import Hint, Topic
from mainspring.stores.postgres.base import QUERIES, for_schema
from mainspring.stores.postgres.conditions import Conditions
from mainspring.stores.postgres.connection import read_address
from mainspring.stores.postgres.hints import PAYLOAD_MAX, payloads
from mainspring.stores.postgres.keeping import day_of, partition_of


class TestAddress:
    def test_our_parameters_are_taken_out_and_the_driver_s_are_left(self) -> None:
        address = read_address("postgres://u:p@h:5433/d?schema=s2&pooler=transaction&pool_size=3&sslmode=require")
        assert address.url == "postgresql://u:p@h:5433/d?sslmode=require"
        assert (address.schema, address.pooler, address.pool_size) == ("s2", True, 3)

    def test_messages_show_no_password(self) -> None:
        assert read_address("postgresql://u:secret@h:5433/d").shown == "postgresql://h:5433/d"

    @pytest.mark.parametrize(
        "url",
        [
            "mysql://h/d",
            "postgresql://h/d?schema=a;drop",
            "postgresql://h/d?schema=Upper",
            "postgresql://h/d?pooler=yes",
            "postgresql://h/d?pool_size=0",
            "postgresql://h/d?pool_size=many",
        ],
    )
    def test_what_it_does_not_understand_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidInput):
            read_address(url)


class TestSql:
    def test_every_statement_names_its_schema(self) -> None:
        moved = for_schema("SELECT 1 FROM mainspring.runs r JOIN mainspring.lanes l ON l.id = r.lane", "other")
        assert moved == 'SELECT 1 FROM "other".runs r JOIN "other".lanes l ON l.id = r.lane'

    def test_conditions_grow_with_their_arguments(self) -> None:
        asked = Conditions(QUERIES).add("task", "t").add("queue", None).add("queue", "q")
        assert str(asked) == "r.task = $1 AND r.queue = $2"
        assert asked.arguments == ["t", "q"]

    def test_no_condition_is_true(self) -> None:
        assert str(Conditions(QUERIES)) == "true"

    def test_states_are_written_out_so_that_partial_indexes_are_found(self) -> None:
        assert str(Conditions(QUERIES).states([State.FAILED])) == "r.state <> 10 AND (r.state IN (11))"
        assert str(Conditions(QUERIES).states([State.COMPLETED])) == "(r.state IN (10))"
        assert str(Conditions(QUERIES).states([])) == "(false)"


class TestHints:
    def test_many_go_in_few_messages_that_are_short_enough(self) -> None:
        hints = [Hint(Topic.READY, f"queue-{number}") for number in range(2000)]
        messages = list(payloads(hints))
        assert all(len(message.encode()) <= PAYLOAD_MAX for message in messages)
        assert "\n".join(messages).split("\n") == [f"ready:queue-{number}" for number in range(2000)]


class TestPartitions:
    def test_a_day_s_name_tells_the_day(self) -> None:
        assert partition_of("history", 20_000) == "history_20241004"
        assert day_of("history", "history_20241004") == 20_000

    def test_the_default_partition_is_no_day(self) -> None:
        assert day_of("history", "history_default") is None
