"""Leaves out the next occurrence of a job, with a record that says that somebody asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mainspring.client.editing import refuse_unless_changeable
from mainspring.client.reading import read_id
from mainspring.client.verifying import Verifying
from mainspring.client.views import Json
from mainspring.core.calendars import Calendar
from mainspring.core.errors import Conflict
from mainspring.core.firing import following_occurrence, plan_firing
from mainspring.core.model import Firing, Instant, Job, JobState, JobView, Kind, SkippedOccurrence
from mainspring.ports.store import JobEdit

REASON = "requested"
_LOOKED_AT_MAX = 1000


class Skipping(Verifying):
    """The call that leaves out one occurrence."""

    async def skip_next(self, job_id: str) -> Json:
        """The next occurrence that would fire is recorded as skipped; answers the job as it goes on."""
        calendars = await self.calendars()

        def edit(view: JobView, now: Instant) -> JobEdit | None:
            refuse_unless_changeable(view, "skip")
            return skip_next(view.job, now, self.settings.misfire, calendars)

        return self._json(await self._edit(read_id(job_id, "job"), edit, "skip-next"))


def skip_next(job: Job, now: Instant, misfire: str | None, calendars: Mapping[str, Calendar]) -> JobEdit:
    """What is due is fired first; then the next one is left out, and the one after it is what comes next."""
    if job.kind is not Kind.RECURRING:
        raise Conflict(f"job {job.id} is {job.kind.word}: it has no next occurrence; cancel it instead")
    if job.state is JobState.PAUSED:
        raise Conflict(f"job {job.id} is paused: nothing of it fires that could be left out")
    due = plan_firing(job, now, misfire=misfire, calendars=calendars)
    firing = due or Firing(job.id, job.version, fired_through=job.fired_through, next_at=job.next_at)
    left_out: list[SkippedOccurrence] = []
    found = None if firing.next_at is None else following_occurrence(job, firing.fired_through, calendars)
    while found is not None and len(left_out) < _LOOKED_AT_MAX:
        reason = REASON if found.fires else "calendar" if "calendar" in found.marks else "dst_gap"
        left_out.append(SkippedOccurrence(found.nominal, found.scheduled_at, reason))
        if found.fires:
            break
        found = following_occurrence(job, found.nominal, calendars)
    if found is None or not found.fires:
        raise Conflict(f"job {job.id} has no further occurrence to leave out")
    following = following_occurrence(job, found.nominal, calendars)
    next_at = None if following is None else following.nominal
    scheduled_at = None if following is None else following.scheduled_at
    firing = replace(
        firing,
        skips=(*firing.skips, *left_out),
        fired_through=found.nominal,
        next_at=next_at,
        next_scheduled_at=scheduled_at,
    )
    state = JobState.FINISHED if next_at is None else job.state
    return JobEdit(job.id, job.version, state=state, next_at=next_at, next_scheduled_at=scheduled_at, firing=firing)
