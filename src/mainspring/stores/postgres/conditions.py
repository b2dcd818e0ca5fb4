"""Filters of lists as SQL: conditions that lie in listing.sql, joined by `and`, their values as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mainspring.core.states import State

NEVER = "false"


class Conditions:
    """Grows one statement's conditions and arguments together."""

    def __init__(self, sql: Mapping[str, str], arguments: list[object] | None = None) -> None:
        self._sql = sql
        self._parts: list[str] = []
        self.arguments: list[object] = [] if arguments is None else arguments

    def add(self, name: str, value: object) -> Conditions:
        """Adds the condition of that name, unless the value is None."""
        if value is not None:
            self._parts.append(self._sql[f"where_{name}"].replace("{value}", self.parameter(value)))
        return self

    def field(self, name: str, text: str) -> Conditions:
        """A field of the payload has this text."""
        filled = self._sql["where_payload"].replace("{name}", self.parameter(name, "text"))
        self._parts.append(filled.replace("{value}", self.parameter(text)))
        return self

    def states(self, states: Iterable[int], *, or_jobs: list[object] | None = None) -> Conditions:
        """In one of these states, or of one of these jobs."""
        wanted = sorted(states)
        numbers = ", ".join(str(int(state)) for state in wanted)
        parts = [self._sql["where_states"].replace("{states}", numbers) if numbers else NEVER]
        if or_jobs:
            parts.append(self._sql["where_later_runs"].replace("{value}", self.parameter(or_jobs)))
        elif numbers and not or_jobs and int(State.COMPLETED) not in wanted:
            self._parts.append(self._sql["where_not_completed"])
        self._parts.append("(" + " OR ".join(parts) + ")")
        return self

    def never(self) -> Conditions:
        self._parts.append(NEVER)
        return self

    def parameter(self, value: object, kind: str = "") -> str:
        self.arguments.append(value)
        return f"${len(self.arguments)}" + (f"::{kind}" if kind else "")

    def __str__(self) -> str:
        return " AND ".join(self._parts) or "true"
