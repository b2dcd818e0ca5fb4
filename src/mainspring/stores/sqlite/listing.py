"""What readers see of jobs and runs: filtered, newest first, never more rows than it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import merge
from typing import TypeVar
from uuid import UUID

from mainspring.core.filters import job_fits, view_fits
from mainspring.core.ids import uuid7
from mainspring.core.model import DAY, Instant, Job, JobFilter, JobState, JobView, Kind, Run, RunFilter
from mainspring.core.states import State
from mainspring.stores.sqlite.rows import raw_of, read_jobs, read_runs, uuid_of
from mainspring.stores.sqlite.session import SQL, Session, Value

T = TypeVar("T")
Values = Mapping[str, Value]

_LIVE = frozenset({State.QUEUED, State.RUNNING, State.HELD, State.RETRYING, State.PARKED, State.UNKNOWN})
_ASIDE = frozenset({State.HELD, State.RETRYING, State.PARKED, State.UNKNOWN})
_OTHER_ENDS = (State.FAILED, State.CANCELLED, State.SKIPPED)
_RUN_WORDS = frozenset(state.word for state in State)
_NEWEST = b"\xff" * 17  # above every id, so that the index is sought from its end
_SLOW = 2 * DAY  # a day from acceptance to end, and a day that an id may be away from acceptance


@lru_cache(maxsize=64)
def statement(name: str) -> str:
    return SQL[name].replace("/* runs */", SQL["runs_filter"]).replace("/* jobs */", SQL["jobs_filter"])


# --- by id


def find_job(session: Session, job_id: UUID) -> Job | None:
    return _first(read_jobs(session, session.run("job_by_id", (job_id.bytes,))))


def find_run(session: Session, run_id: UUID, *, shown: bool = True) -> Run | None:
    live = read_runs(session, session.run("live_by_id", (run_id.bytes,)), shown=shown)
    return live[0] if live else _first(read_runs(session, session.run("past_by_id", (run_id.bytes,)), shown=shown))


def find_standing(session: Session, job_id: UUID) -> tuple[int, Run] | None:
    """The run by which a one-time job is known once it has left `jobs`, with the number of its row."""
    for name in ("live_standing", "past_standing"):
        found = session.run(name, (job_id.bytes,)).fetchall()
        for run in read_runs(session, found, shown=False):
            return found[0][0], run
    return None


def newest_run(session: Session, job_id: UUID) -> Run | None:
    found = [
        *read_runs(session, session.run("newest_live_of_job", (job_id.bytes,))),
        *read_runs(session, session.run("newest_past_of_job", (job_id.bytes,))),
    ]
    return max(found, key=lambda run: run.id.int, default=None)


def job_view(session: Session, job_id: UUID) -> JobView | None:
    job = find_job(session, job_id)
    newest = newest_run(session, job_id)
    if job is not None:
        return JobView(job, job.state.word, last_run=newest)
    standing = None if newest is None else find_standing(session, job_id)
    if standing is None or newest is None:
        return None
    return JobView(_job_of_run(standing[1], newest), newest.state.word, newest.reason, newest)


def _job_of_run(run: Run, newest: Run) -> Job:
    """The job that has left `jobs`, as the run that stands for it tells."""
    if newest.state is State.CANCELLED:
        state = JobState.CANCELLED
    else:
        state = JobState.FINISHED if newest.state.ended else JobState.SCHEDULED
    return Job(
        id=run.job_id,
        lane=run.lane,
        kind=run.kind,
        state=state,
        priority=run.priority,
        payload=run.payload,
        document=run.document,
        key=run.key,
        next_at=None,
        scheduled_at=run.scheduled_at,
        fired_through=run.created_at,
        version=1,
        runs_made=1,
        created_at=run.created_at,
        updated_at=newest.finished_at or newest.started_at or run.created_at,
        created_by=run.created_by,
        expires_at=run.expires_at,
    )


# --- lists of runs


def list_runs(session: Session, where: RunFilter, limit: int) -> list[Run]:
    values = _run_values(session, where, limit)
    if values is None or limit <= 0:
        return []
    found: list[Run] = []
    for name, state in _run_sources(where):
        cursor = session.connection.execute(statement(name), values | {"state": state})
        found += read_runs(session, cursor)
    found.sort(key=lambda run: run.id.int, reverse=True)
    return found[:limit]


def dead_letters(session: Session, where: RunFilter, limit: int) -> list[Run]:
    values = _run_values(session, where, limit)
    if values is None:
        return []
    return read_runs(session, session.connection.execute(statement("list_dead_letters"), values))


def _run_sources(where: RunFilter) -> list[tuple[str, int | None]]:
    """Which statements find the runs that are asked for, with the state where one is bound to it."""
    wanted = _states(where.status)
    if where.job_id is not None:
        return [("list_live_of_job", None), ("list_past_of_job", None)]
    sources: list[tuple[str, int | None]] = []
    live = wanted & _LIVE
    if live and (where.worker is not None or live <= {State.RUNNING, State.PARKED}):
        sources.append(("list_running", None))
    elif live and live <= _ASIDE:
        sources += [("list_aside", None), ("list_unknown", None)]
    elif live:
        sources.append(("list_live", None))
    if State.COMPLETED in wanted:
        sources.append(("list_past", None))
    else:
        sources += [("list_past_of_state", int(state)) for state in _OTHER_ENDS if state in wanted]
    return sources


def _run_values(session: Session, where: RunFilter, limit: int) -> dict[str, Value] | None:
    """None where no lane fits, so that nothing can be found."""
    lanes = _lanes(session, where.namespace, where.task, where.queue, None)
    if lanes == "[]":
        return None
    plain = (where.worker, where.reason, where.error, where.start, where.end, where.tag) == (None,) * 6
    return {
        "lanes": lanes,
        "unknown": _unknown_lanes(session),
        "states": json.dumps([int(state) for state in _states(where.status)]) if where.status else None,
        "after": _NEWEST if where.after_id is None else where.after_id.bytes,
        "worker": raw_of(where.worker),
        "reason": where.reason,
        "error": where.error,
        "start": where.start,
        "end": where.end,
        "tag": where.tag,
        "job": raw_of(where.job_id),
        "plain": int(plain and lanes is None),
        "limit": limit,
    }


def _states(words: Sequence[str]) -> frozenset[State]:
    return frozenset(state for state in State if not words or state.word in words)


def _lanes(session: Session, namespace: str, task: str | None, queue: str | None, region: str | None) -> str | None:
    """The numbers of the lanes that fit as JSON; None where all do."""
    known = session.lanes.all(session)
    fitting = [
        identity
        for lane, identity in known.items()
        if lane.namespace == namespace
        and (task is None or lane.task == task)
        and (queue is None or lane.queue == queue)
        and (region is None or lane.region == region)
    ]
    return None if fitting and len(fitting) == len(known) else json.dumps(fitting)


def _unknown_lanes(session: Session) -> str:
    known = session.lanes.all(session)
    return json.dumps([i for lane, i in known.items() if not session.is_known(lane.namespace, lane.task)])


# --- lists of jobs


def list_jobs(session: Session, where: JobFilter, after: UUID | None, limit: int) -> list[JobView]:
    """Merges the indexes in which jobs of the wanted kinds lie, and looks at one job after the other."""
    values = _job_values(session, where, after)
    if values is None:
        return []
    views: list[JobView] = []
    last = b""
    for raw in merge(*_job_ids(session, where, values), reverse=True):
        if len(views) >= limit:
            break
        if raw == last:
            continue
        last = raw
        view = job_view(session, uuid_of(raw))
        if view is not None and job_fits(view.job, where) and view_fits(view, where):
            views.append(view)
    return views


def _job_values(session: Session, where: JobFilter, after: UUID | None) -> dict[str, Value] | None:
    lanes = _lanes(session, where.namespace, where.task, where.queue, where.region)
    if lanes == "[]":
        return None
    states = [int(state) for state in JobState if not where.status or state.word in where.status]
    return {
        "lanes": lanes,
        "unknown": _unknown_lanes(session),
        "kind": None if where.kind is None else int(where.kind),
        "key": where.key,
        "created_by": where.created_by,
        "after": _NEWEST if after is None else after.bytes,
        "job_states": json.dumps(states) if where.status else None,
        "since": where.ended_since,
        "floor": b"" if where.ended_since is None else _floor(where.ended_since).bytes,
    }


def _floor(since: Instant) -> UUID:
    return uuid7(max(0, since - _SLOW), bytes(10))


def _job_ids(session: Session, where: JobFilter, values: Values) -> Iterator[Iterator[bytes]]:
    for name, state in _job_sources(where):
        cursor = session.connection.execute(statement(name), dict(values) | {"state": state})
        yield (row[0] for row in cursor)


def _job_sources(where: JobFilter) -> list[tuple[str, int | None]]:
    words = where.status
    sources: list[tuple[str, int | None]] = []
    if not words or any(state.word in words for state in JobState):
        sources.append(("job_ids", None))
    if where.kind is Kind.RECURRING or (words and not _RUN_WORDS.intersection(words)):
        return sources
    wanted = _states(words)
    live = wanted & _LIVE
    if live and live <= _ASIDE | {State.RUNNING}:
        sources += [("running_job_ids", None), ("aside_job_ids", None), ("unknown_job_ids", None)]
    elif live:
        sources += [("live_job_ids", None), ("live_fired_ids", None)]
    if State.COMPLETED in wanted:
        sources += [("past_completed_ids", None), ("past_slow_ids", None)]
    sources += [("past_other_ids", int(state)) for state in _OTHER_ENDS if state in wanted]
    if any(state.ended for state in wanted):
        sources.append(("past_fired_ids", None))
    return [*sources, ("beside_live_ids", None), ("beside_past_ids", None)]


def _first(rows: list[T]) -> T | None:
    return rows[0] if rows else None
