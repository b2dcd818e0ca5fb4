"""What is to come of jobs whose calendar has changed, written anew."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from mainspring.core.calendars import Calendar
from mainspring.core.firing import following_occurrence, plan_firing
from mainspring.core.model import Instant, Job, JobState, Kind
from mainspring.ports.store import JobEdit, Store

_TRIES = 5


def replanned(
    job: Job,
    now: Instant,
    before: Mapping[str, Calendar],
    after: Mapping[str, Calendar],
    misfire: str | None,
) -> JobEdit | None:
    """What is due is decided by the calendars before; what comes next by those after. None where nothing moves."""
    if job.kind is not Kind.RECURRING or job.state.ended:
        return None
    paused = job.state is JobState.PAUSED
    firing = None if paused else plan_firing(job, now, misfire=misfire, calendars=before)
    if firing is not None and firing.next_at is None:
        return None  # it ends with what is due, and whoever fires that says so
    through = job.fired_through if firing is None else firing.fired_through
    following = following_occurrence(job, through, after)
    if following is not None and following.scheduled_at <= now and not paused:
        through = max(now, through)  # an edit makes no misfires
        following = following_occurrence(job, through, after)
    if following is None:
        return None
    if firing is None and (following.nominal, following.scheduled_at) == (job.next_at, job.scheduled_at):
        return None
    return JobEdit(
        job.id,
        job.version,
        next_at=following.nominal,
        next_scheduled_at=following.scheduled_at,
        fired_through=through,
        firing=firing,
    )


async def replan_users(
    store: Store,
    name: str,
    namespace: str,
    before: Mapping[str, Calendar],
    after: Mapping[str, Calendar],
    misfire: str | None,
) -> int:
    """All jobs that use the calendar; how many moved."""
    moved = 0
    last: UUID | None = None
    while users := await store.jobs_using_calendar(name, namespace=namespace, after=last):
        for job in users:
            moved += await _replan(store, job, before, after, misfire)
        last = users[-1].id
    return moved


async def _replan(
    store: Store, job: Job, before: Mapping[str, Calendar], after: Mapping[str, Calendar], misfire: str | None
) -> bool:
    current: Job | None = job
    for _ in range(_TRIES):
        edit = None if current is None else replanned(current, await store.now(), before, after, misfire)
        if edit is None:
            return False
        if await store.change(edit) is not None:
            return True
        view = (await store.jobs([job.id]))[0]
        current = None if view is None else view.job
    return False
