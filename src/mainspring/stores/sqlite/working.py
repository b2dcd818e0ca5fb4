"""Runs are claimed, and how their attempts ended is recorded: the hot path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from uuid import UUID

from mainspring.core.model import Claimed, Ending, Instant, Verdict
from mainspring.core.states import Event, ForbiddenTransition, State
from mainspring.stores.sqlite.driver import sqlite3
from mainspring.stores.sqlite.ending import bury
from mainspring.stores.sqlite.rows import uuid_of
from mainspring.stores.sqlite.session import Session, Value, packed, positions

SUSPECT_DEATHS = 2
ANY_DEATHS = 1 << 30
CHUNK = 256  # so many payloads at most are in memory beyond `bytes_max`

ENDINGS = frozenset(
    {State.COMPLETED, State.FAILED, State.CANCELLED, State.RETRYING, State.QUEUED, State.UNKNOWN, State.PARKED}
)

_claim_order = itemgetter(10, 15, 0)  # less priority, ready_at, id
_new_tuple = tuple.__new__

Head = tuple[int, Instant, bytes, int, int]  # -priority, ready_at, id, number, bytes of payload


class Claim:
    """One claim: the open queues take turns, each giving the best head of its lanes."""

    def __init__(
        self,
        worker: UUID,
        tasks: Sequence[str],
        queues: Sequence[str] | None,
        *,
        count: int,
        suspects: bool,
        bytes_max: int,
        namespace: str,
        now: Instant | None,
    ) -> None:
        self._worker = worker.bytes
        self._tasks = frozenset(tasks)
        self._queues = None if queues is None else frozenset(queues)
        self._count = count
        self._deaths = ANY_DEATHS if suspects else SUSPECT_DEATHS
        self._bytes_max = bytes_max
        self._namespace = namespace
        self._given_now = now

    def nothing_ready(self, session: Session) -> list[Claimed] | None:
        """An idle claim takes no lock."""
        return None if self._lanes_with_work(session) else []

    def take(self, session: Session) -> list[Claimed]:
        if session.row("may_claim", (self._worker,)) is None:
            return []
        paused = {name for (name,) in session.run("paused_queues", (self._namespace,))}
        lanes = [lane for lane in self._lanes_with_work(session) if lane[0] not in paused]
        now = session.now(self._given_now)
        if len(lanes) == 1:
            return self._take_from_one(session, lanes[0], now)
        return self._take_merged(session, lanes, now) if lanes else []

    def _lanes_with_work(self, session: Session) -> list[tuple[str, int]]:
        wanted = {
            identity: lane.queue
            for lane, identity in session.lanes.all(session).items()
            if lane.task in self._tasks
            and lane.namespace == self._namespace
            and (self._queues is None or lane.queue in self._queues)
        }
        if not wanted:
            return []
        found = session.run("lanes_with_work", (json.dumps(list(wanted)),)).fetchall()
        return sorted((wanted[identity], identity) for (identity,) in found)

    def _take_from_one(self, session: Session, lane: tuple[str, int], now: Instant) -> list[Claimed]:
        """In chunks, so that no more than one chunk is read beyond the bound of bytes; the last one is cut exactly."""
        queue, identity = lane
        claimed: list[Claimed] = []
        room = self._bytes_max
        while len(claimed) < self._count:
            wanted = min(CHUNK, self._count - len(claimed))
            values = (self._worker, now, identity, self._deaths)
            session.run("savepoint_try")
            rows = session.run("claim", (*values, wanted)).fetchall()
            rows.sort(key=_claim_order)
            fitting, room = _fitting([len(row[7]) for row in rows], room, first=not claimed)
            if fitting < len(rows):
                session.run("rollback_try")
                rows = session.run("claim", (*values, fitting)).fetchall() if fitting else []
                rows.sort(key=_claim_order)
            session.run("release_try")
            claimed += _claimed(session, rows, now)
            if len(rows) < wanted:
                break
        if claimed:
            session.turn[self._namespace] = queue
        return claimed

    def _take_merged(self, session: Session, lanes: list[tuple[str, int]], now: Instant) -> list[Claimed]:
        cursors: list[sqlite3.Cursor] = []
        lines: dict[str, list[sqlite3.Cursor]] = {}
        for queue, identity in lanes:
            cursor = session.run("heads_of_lane", (identity, now, self._deaths, self._count))
            cursors.append(cursor)
            lines.setdefault(queue, []).append(cursor)
        turns: list[tuple[str, Iterator[Head]]] = [
            (queue, merge(*lines[queue])) for queue in _in_turn(list(lines), session.turn.get(self._namespace, ""))
        ]
        chosen = self._choose(session, turns)
        for cursor in cursors:
            cursor.close()
        rows = session.run("claim_chosen", (self._worker, now, json.dumps([head[3] for head in chosen]))).fetchall()
        taken = {row[0]: row for row in rows}
        return _claimed(session, [taken[head[2]] for head in chosen], now)

    def _choose(self, session: Session, turns: list[tuple[str, Iterator[Head]]]) -> list[Head]:
        chosen: list[Head] = []
        room = self._bytes_max
        while turns and len(chosen) < self._count:
            queue, heads = turns.pop(0)
            head = next(heads, None)
            if head is None:
                continue
            room -= head[4]
            if chosen and room < 0:
                break
            chosen.append(head)
            session.turn[self._namespace] = queue
            turns.append((queue, heads))
        return chosen


def finish(session: Session, worker: UUID, endings: Sequence[Ending], now: Instant | None) -> list[Verdict]:
    for ending in endings:
        if ending.state not in ENDINGS:
            raise ForbiddenTransition(State.RUNNING, Event.EXPIRE)
    instant = session.now(now)
    if endings and _finish_completed(session, worker, endings, instant):
        return [Verdict.ACCEPTED] * len(endings)
    return _finish_each(session, worker, endings, instant)


def progress(session: Session, worker: UUID, items: Sequence[tuple[UUID, int, str]]) -> list[bool]:
    return [
        session.run("set_progress", (worker.bytes, identity.bytes, fence, text)).rowcount == 1
        for identity, fence, text in items
    ]


def _finish_completed(session: Session, worker: UUID, endings: Sequence[Ending], now: Instant) -> bool:
    """The short way: every attempt completed and its run leaves nothing behind. False, and nothing done, if not so."""
    encoded = _encoded(endings)
    if encoded is None:
        return False
    fences, result = encoded
    ids = packed(ending.id for ending in endings)
    session.run("savepoint_try")
    buried = session.run("bury_completed", (ids, fences, worker.bytes, now, result)).rowcount
    if buried == len(endings) == session.run("drop_runs_by_id", (ids, positions(len(endings)))).rowcount:
        session.run("release_try")
        return True
    session.run("rollback_try")
    session.run("release_try")
    return False


def _encoded(endings: Sequence[Ending]) -> tuple[str, bytes | None] | None:
    """The fences as JSON with the one result of all, or `fence:result` each; None where the short way is none."""
    if any(
        ending.state is not State.COMPLETED or ending.spent or ending.attempts or ending.reason or ending.error
        for ending in endings
    ):
        return None
    results = {ending.result for ending in endings}
    if len(results) == 1:
        return str([ending.fence for ending in endings]), results.pop()
    try:
        return json.dumps([_with_result(ending) for ending in endings], ensure_ascii=False), None
    except ValueError:
        return None


def _with_result(ending: Ending) -> str:
    if ending.result is None:
        return str(ending.fence)
    if b"\0" in ending.result:
        raise ValueError("JSON text in SQLite ends at a NUL")
    return f"{ending.fence}:{ending.result.decode()}"


def _finish_each(session: Session, worker: UUID, endings: Sequence[Ending], now: Instant) -> list[Verdict]:
    verdicts: list[Verdict] = []
    changes: list[tuple[Value, ...]] = []
    ended: list[int] = []
    seen: set[UUID] = set()
    ids = packed(ending.id for ending in endings)
    states = session.run("endings_state", (ids, positions(len(endings)))).fetchall()
    for ending, (number, state, fence, holder, cancel_requested_at, _attempt) in zip(endings, states, strict=True):
        if state != State.RUNNING or fence != ending.fence or holder != worker.bytes or ending.id in seen:
            verdicts.append(Verdict.STALE)
        elif cancel_requested_at is not None and ending.state is not State.CANCELLED:
            verdicts.append(Verdict.CANCEL_REQUESTED)
        else:
            verdicts.append(Verdict.ACCEPTED)
            seen.add(ending.id)
            changes.append(_change(ending, number, now))
            if ending.state.ended:
                ended.append(number)
            elif ending.state is State.QUEUED:
                _hint_ready(session, number)
    session.many("end_attempt", changes)
    bury(session, ended, now)
    return verdicts


def _change(ending: Ending, number: int, now: Instant) -> tuple[Value, ...]:
    ready_at = now + ending.wait if ending.state is State.RETRYING else None
    return (
        number,
        int(ending.state),
        ending.result,
        ending.error,
        ending.spent,
        ending.deaths,
        ending.attempts,
        ending.reason,
        0 if ending.started else 1,
        ready_at,
    )


def _hint_ready(session: Session, number: int) -> None:
    found = session.row("lane_of_run", (number,))
    if found is not None:
        session.ready(found[0])


def _fitting(sizes: Sequence[int], room: int, *, first: bool) -> tuple[int, int]:
    """How many of the payloads fit, at least one if they are the first, and what room is left."""
    total = sum(sizes)
    if total <= room:
        return len(sizes), room - total
    fitting = 0
    for size in sizes:
        if size > room and not (first and fitting == 0):
            break
        room -= size
        fitting += 1
    return fitting, room


def _in_turn(queues: list[str], last: str) -> list[str]:
    """Beginning after the one that gave last."""
    return sorted(name for name in queues if name > last) + sorted(name for name in queues if name <= last)


def _claimed(session: Session, rows: Sequence[sqlite3.Row], now: Instant) -> list[Claimed]:
    """Once per run of a flood, hence a bare tuple for each and one id where two are equal."""
    claimed = []
    lanes = {row[6]: session.lanes.lane(session, row[6]) for row in rows}
    for (
        identity, job_id, fence, attempt, spent, deaths, lane_id, payload, document, scheduled_at, less_priority,
        catch_up, attempts, lateness, created_at, _ready_at,
    ) in rows:  # fmt: skip
        run_id = uuid_of(identity)
        lane = lanes[lane_id]
        values = (
            run_id, fence, attempt, spent, deaths, lane.task, payload, document, scheduled_at, now,
            run_id if job_id == identity else uuid_of(job_id), lane.queue, -less_priority, catch_up == 1, attempts,
            lateness or 0, created_at,
        )  # fmt: skip
        claimed.append(_new_tuple(Claimed, values))
    return claimed
