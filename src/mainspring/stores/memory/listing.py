"""What readers see: copies of rows, filtered, newest first."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from heapq import nlargest
from uuid import UUID

from mainspring.core.filters import job_fits, tags_of, view_fits
from mainspring.core.model import Job, JobFilter, JobState, JobView, Run, RunFilter
from mainspring.core.states import State
from mainspring.stores.memory.tables import Tables

NO_WORKER = "no_worker"


def shown_run(tables: Tables, run: Run) -> Run:
    """A copy; queued without anybody who could carry it out shows as held."""
    seen = copy.copy(run)
    if run.state is State.QUEUED and not tables.known(run):
        seen.state = State.HELD
        seen.reason = NO_WORKER
    return seen


def runs(tables: Tables, ids: Sequence[UUID]) -> list[Run | None]:
    found = [tables.run(run_id) for run_id in ids]
    return [None if run is None else shown_run(tables, run) for run in found]


def list_runs(tables: Tables, where: RunFilter, limit: int) -> list[Run]:
    if where.job_id is None:
        rows: Iterable[Run] = [*tables.runs.values(), *tables.history.values()]
    else:
        rows = filter(None, (tables.run(run_id) for run_id in tables.runs_of_job.get(where.job_id, ())))
    return _newest_runs(tables, rows, where, limit)


def dead_letters(tables: Tables, where: RunFilter, limit: int) -> list[Run]:
    return _newest_runs(tables, tables.dead_letters.values(), where, limit)


def _newest_runs(tables: Tables, rows: Iterable[Run], where: RunFilter, limit: int) -> list[Run]:
    seen = (shown_run(tables, run) for run in rows)
    return nlargest(limit, (run for run in seen if _run_fits(run, where)), key=lambda run: run.id.int)


def _run_fits(run: Run, where: RunFilter) -> bool:
    wanted = (
        (where.namespace, run.lane.namespace),
        (where.job_id, run.job_id),
        (where.task, run.lane.task),
        (where.queue, run.lane.queue),
        (where.worker, run.worker),
        (where.reason, run.reason),
    )
    return (
        all(wish is None or wish == value for wish, value in wanted)
        and (not where.status or run.state.word in where.status)
        and (where.after_id is None or run.id.int < where.after_id.int)
        and (where.start is None or run.scheduled_at >= where.start)
        and (where.end is None or run.scheduled_at < where.end)
        and (where.tag is None or where.tag in tags_of(run.document))
        and (where.error is None or where.error in (run.error or ""))
    )


# --- jobs


def job_view(tables: Tables, job_id: UUID) -> JobView | None:
    job = tables.jobs.get(job_id)
    newest = _newest_run(tables, job_id)
    if job is not None:
        return JobView(copy.copy(job), job.state.word, last_run=newest)
    standing = tables.standing.get(job_id)
    run = None if standing is None else tables.run(standing)
    if run is None or newest is None:
        return None
    return JobView(_job_of_run(run, newest), newest.state.word, newest.reason, newest)


def _newest_run(tables: Tables, job_id: UUID) -> Run | None:
    known = tables.runs_of_job.get(job_id)
    run = tables.run(max(known, key=lambda run_id: run_id.int)) if known else None
    return None if run is None else shown_run(tables, run)


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


def list_jobs(tables: Tables, where: JobFilter, after: UUID | None, limit: int) -> list[JobView]:
    views: list[JobView] = []
    ids = sorted((*tables.jobs, *tables.standing), key=lambda job_id: job_id.int, reverse=True)
    for job_id in ids:
        if len(views) >= limit:
            break
        if after is not None and job_id.int >= after.int:
            continue
        view = job_view(tables, job_id)
        if view is not None and job_fits(view.job, where) and view_fits(view, where):
            views.append(view)
    return views
