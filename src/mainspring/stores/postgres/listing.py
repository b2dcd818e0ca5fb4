"""What readers see: copies of rows, filtered, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.ids import instant_of_id
from mainspring.core.model import Instant, Job, JobFilter, JobState, JobView, Kind, Run, RunFilter
from mainspring.core.states import State
from mainspring.stores.postgres.base import LOOKED_BACK, Base
from mainspring.stores.postgres.conditions import Conditions
from mainspring.stores.postgres.rows import job_of, run_of

if TYPE_CHECKING:
    import asyncpg

RETRIED_MAX = 1000
PAGES_MAX = 20


class Listing(Base):
    """Reading by id and by filter."""

    async def runs(self, ids: Sequence[UUID]) -> list[Run | None]:
        """Live and ended runs and skipped occurrences, in the order asked."""
        if not ids:
            return []
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        found = _by_id(await self._read("runs_by_id", list(ids), since))
        missing = [one for one in ids if one not in found]
        if missing:
            found |= _by_id(await self._read("runs_by_id_anywhere", missing))
        return [run_of(found[one]) if one in found else None for one in ids]

    async def list_runs(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        """Newest first (by id, `where.after_id` exclusive), live and ended alike."""
        return await self._list_runs("list_runs", where, limit)

    async def dead_letters(self, where: RunFilter, *, limit: int = 50) -> list[Run]:
        """Failed runs that nobody replayed or discarded, newest first."""
        return await self._list_runs("list_dead_letters", where, limit)

    async def _list_runs(self, name: str, where: RunFilter, limit: int) -> list[Run]:
        asked = _run_conditions(self._sql, where)
        sql = self._sql[name].replace("{where}", str(asked)).replace("{limit}", asked.parameter(limit, "bigint"))
        seen: dict[UUID, Run] = {}
        for row in await self._pool.statement(sql, *asked.arguments):
            seen.setdefault(row["id"], run_of(row))
        return list(seen.values())

    # --- jobs

    async def jobs(self, ids: Sequence[UUID]) -> list[JobView | None]:
        """Rows of `jobs` are read before runs: a job that fires in between is found among the runs."""
        if not ids:
            return []
        jobs = {row["id"]: job_of(row) for row in await self._read("jobs_by_id", list(ids))}
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        runs: dict[UUID, list[Run]] = {}
        for row in await self._read("runs_of_jobs", sorted(set(ids)), since):
            runs.setdefault(row["job_id"], []).append(run_of(row))
        return [_view(jobs.get(one), runs.get(one, [])) for one in ids]

    async def list_jobs(self, where: JobFilter, *, after: UUID | None = None, limit: int = 50) -> list[JobView]:
        """Candidates come from the database by what rows can tell; the status of a retried job is looked at here."""
        views: list[JobView] = []
        retried = await self._retried(where)
        for _ in range(PAGES_MAX):
            ids = await self._list_job_ids(where, after, limit, retried)
            found = await self.jobs(ids)
            views += [view for view in found if view is not None and _fits(view, where)]
            if len(views) >= limit or len(ids) < limit:
                break
            after = ids[-1]
        return views[:limit]

    async def _list_job_ids(
        self, where: JobFilter, after: UUID | None, limit: int, retried: list[object]
    ) -> list[UUID]:
        arguments: list[object] = []
        jobs = _job_conditions(self._sql, where, arguments, "run_before", after)
        jobs.add("next_before", where.next_before)
        job_states, run_states = _states_of(where.status)
        if where.status:
            jobs.states(job_states)
        own = _run_side(self._sql, where, arguments, "run_before", after, run_states, retried)
        others = _run_side(self._sql, where, arguments, "job_before", after, run_states, retried)
        recent = Conditions(self._sql, arguments).add("recent", where.ended_since)
        bound = recent.parameter(limit, "bigint")
        sql = self._sql["list_job_ids"]
        for mark, text in (("jobs", jobs), ("own", own), ("others", others), ("recent", recent), ("limit", bound)):
            sql = sql.replace("{" + mark + "}", str(text))
        return [row[0] for row in await self._pool.statement(sql, *arguments)]

    async def _retried(self, where: JobFilter) -> list[object]:
        _, run_states = _states_of(where.status)
        if not run_states:
            return []
        asked = Conditions(self._sql).states(run_states)
        sql = self._sql["retried_jobs"].replace("{states}", str(asked))
        sql = sql.replace("{limit}", asked.parameter(RETRIED_MAX, "bigint"))
        return [row[0] for row in await self._pool.statement(sql, *asked.arguments)]


def _by_id(rows: Sequence[asyncpg.Record]) -> dict[UUID, asyncpg.Record]:
    """The first of each id: a run that is live is not told of by an older record."""
    found: dict[UUID, asyncpg.Record] = {}
    for row in rows:
        found.setdefault(row["id"], row)
    return found


def _run_conditions(sql: dict[str, str], where: RunFilter) -> Conditions:
    asked = Conditions(sql).add("namespace", where.namespace).add("job", where.job_id).add("task", where.task)
    asked.add("queue", where.queue).add("worker", where.worker).add("tag", where.tag).add("reason", where.reason)
    asked.add("error", where.error).add("start", where.start).add("end", where.end)
    asked.add("run_before", where.after_id)
    if where.status:
        asked.states(_states_of(where.status)[1])
    return asked


def _job_conditions(
    sql: dict[str, str], where: JobFilter, arguments: list[object], before: str, after: UUID | None
) -> Conditions:
    """What rows of `jobs` and the runs that stand for jobs have in common."""
    asked = Conditions(sql, arguments).add("namespace", where.namespace).add("task", where.task)
    asked.add("queue", where.queue).add("region", where.region).add("kind", where.kind).add("key", where.key)
    asked.add("created_by", where.created_by).add("created_after", where.created_after)
    asked.add("created_before", where.created_before).add("tag", where.tag).add("prefix", where.prefix)
    for name, text in where.payload:
        asked.field(name, text)
    return asked.add(before, after)


def _run_side(
    sql: dict[str, str],
    where: JobFilter,
    arguments: list[object],
    before: str,
    after: UUID | None,
    states: set[State],
    retried: list[object],
) -> Conditions:
    asked = _job_conditions(sql, where, arguments, before, after)
    if where.next_before is not None:
        asked.never()  # what has left `jobs` is due no more
    if where.status:
        asked.states(states, or_jobs=retried)
    return asked


def _states_of(words: Sequence[str]) -> tuple[set[JobState], set[State]]:
    """The states that users mean: of rows of `jobs`, and of runs."""
    return {state for state in JobState if state.word in words}, {state for state in State if state.word in words}


def _fits(view: JobView, where: JobFilter) -> bool:
    if where.status and view.status not in where.status:
        return False
    last = view.last_run
    if where.ended_since is None or view.job.kind is Kind.RECURRING:
        return True
    if last is None or last.state is not State.COMPLETED or last.finished_at is None:
        return True
    return last.finished_at >= where.ended_since


def _view(job: Job | None, runs: Sequence[Run]) -> JobView | None:
    newest = max(runs, key=lambda run: run.id, default=None)
    if job is not None:
        return JobView(job, job.state.word, last_run=newest)
    standing = next((run for run in runs if run.stands_for_job), None)
    if standing is None or newest is None:
        return None
    return JobView(_job_of_run(standing, newest), newest.state.word, newest.reason, newest)


def _job_of_run(run: Run, newest: Run) -> Job:
    """The job that has left `jobs`, as the run that stands for it tells."""
    return Job(
        id=run.job_id,
        lane=run.lane,
        kind=run.kind,
        state=_state_of_job(newest.state),
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
        updated_at=_last_change(newest, run.created_at),
        created_by=run.created_by,
        expires_at=run.expires_at,
    )


def _state_of_job(state: State) -> JobState:
    if state is State.CANCELLED:
        return JobState.CANCELLED
    return JobState.FINISHED if state.ended else JobState.SCHEDULED


def _last_change(run: Run, created_at: Instant) -> Instant:
    return run.finished_at or run.started_at or created_at
