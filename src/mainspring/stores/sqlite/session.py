"""One transaction as the verbs see it: named SQL, the store's clock, interned lanes, and the hints to send after it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

from mainspring.core.model import SECOND, Instant, Lane
from mainspring.ports.store import Hint, Topic
from mainspring.stores.shared import load_queries
from mainspring.stores.sqlite.driver import sqlite3

SQL = load_queries(Path(__file__).with_name("sql"))

Value = int | float | str | bytes | None
Row = tuple[Value, ...]


class MachineClock:
    """Microseconds of the machine. Small steps back, as time servers make them, are ridden out; larger ones are real."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> Instant:
        instant = time.time_ns() // 1000
        if self._last - SECOND < instant < self._last:
            return self._last
        self._last = instant
        return instant


class Lanes:
    """Interned lanes. They are never removed, so what was once read stays true, unless its transaction was undone."""

    def __init__(self) -> None:
        self._ids: dict[Lane, int] = {}
        self._lanes: dict[int, Lane] = {}

    def forget(self) -> None:
        self._ids.clear()
        self._lanes.clear()

    def intern(self, session: Session, lane: Lane) -> int:
        found = self._ids.get(lane)
        if found is not None:
            return found
        session.run("add_lane", (lane.namespace, lane.queue, lane.task, lane.region, lane.placement))
        self.refresh(session)
        return self._ids[lane]

    def lane(self, session: Session, identity: int) -> Lane:
        if identity not in self._lanes:
            self.refresh(session)
        return self._lanes[identity]

    def all(self, session: Session) -> dict[Lane, int]:
        """Every lane there is, those of other processes included."""
        (newest,) = session.row("newest_lane") or (0,)
        if newest not in self._lanes and newest:
            self.refresh(session)
        return self._ids

    def refresh(self, session: Session) -> None:
        for identity, namespace, queue, task, region, placement in session.run("all_lanes"):
            lane = Lane(namespace, queue, task, region, placement)
            self._ids[lane] = identity
            self._lanes[identity] = lane


class Session:
    """What a verb works with. `turn` remembers, per namespace, which queue gave the last run."""

    __slots__ = ("clock", "connection", "hints", "known", "lanes", "turn")

    def __init__(self, connection: sqlite3.Connection, clock: MachineClock) -> None:
        self.connection = connection
        self.clock = clock
        self.lanes = Lanes()
        self.known: set[tuple[str, str]] = set()
        self.turn: dict[str, str] = {}
        self.hints: dict[Hint, None] = {}

    def run(self, name: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        return self.connection.execute(SQL[name], values)

    def many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        return self.connection.executemany(SQL[name], rows).rowcount

    def row(self, name: str, values: Sequence[Value] = ()) -> tuple[int, ...] | None:
        """One row of numbers."""
        found: tuple[int, ...] | None = self.connection.execute(SQL[name], values).fetchone()
        return found

    def now(self, given: Instant | None) -> Instant:
        return self.clock.now() if given is None else given

    def hint(self, topic: Topic, key: str = "") -> None:
        self.hints[Hint(topic, key)] = None

    def ready(self, lane: int) -> None:
        self.hint(Topic.READY, self.lanes.lane(self, lane).queue)

    def is_known(self, namespace: str, task: str) -> bool:
        """Whether a worker ever registered the task; tasks are never removed, so a yes is remembered."""
        if (namespace, task) in self.known:
            return True
        found = self.row("is_known_task", (namespace, task)) is not None
        if found:
            self.known.add((namespace, task))
        return found

    def forget(self) -> None:
        """A transaction was undone: nothing read in it counts."""
        self.lanes.forget()
        self.known.clear()


def packed(ids: Iterable[UUID]) -> bytes:
    """Ids as one BLOB of 16 bytes each: SQL takes the n-th by substr, in one step for the whole batch."""
    return b"".join([identity.bytes for identity in ids])


def positions(count: int) -> str:
    """A JSON array of `count` elements, whose keys are the positions 0, 1, …"""
    return "[" + "0," * (count - 1) + "0]" if count else "[]"
