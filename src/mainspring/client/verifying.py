"""Proves from a store that its promises hold there: each finding is one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from mainspring.client.explaining import Explaining
from mainspring.client.views import Json
from mainspring.core.backfill import Definition
from mainspring.core.conservation import Account, account, can_be_counted, repeated
from mainspring.core.errors import InvalidInput
from mainspring.core.firing import following_occurrence
from mainspring.core.model import DAY, Instant, Job, JobFilter, JobState, JobView, Kind, Run, RunFilter
from mainspring.core.states import State
from mainspring.core.times import utc_text

_PAGE = 1000
_LOOKS = 4
_LIVE = ("queued", "held", "running", "retrying", "unknown", "scheduled", "waiting", "active", "paused")


@dataclass(slots=True)
class Count:
    """What was looked at."""

    jobs: int = 0
    occurrences: int = 0
    not_counted: int = 0
    dead_letters: int = 0
    running: int = 0
    keys: int = 0


class Verifying(Explaining):
    """The call that looks at everything; it only reads."""

    async def verify(self, *, history_days: int = 30, settle: float = 2.0) -> Json:
        """`settle`: how many seconds a suspicion may take to pass before it counts."""
        count = Count()
        findings = [
            *[each async for each in self._schedules(count, history_days, settle)],
            *[each async for each in self._dead_letters(count)],
            *[each async for each in self._running(count, settle)],
            *[each async for each in self._keys(count, settle)],
        ]
        checked = {name: getattr(count, name) for name in Count.__slots__}
        return {"ok": not findings, "checked": checked, "findings": findings}

    async def _schedules(self, count: Count, history_days: int, settle: float) -> AsyncIterator[Json]:
        async for view in self._all_jobs(JobFilter(namespace=self.settings.namespace, kind=Kind.RECURRING)):
            count.jobs += 1
            found: list[Json] = []
            for look in range(_LOOKS):
                found = await self._schedule(view.job.id, count, history_days)
                if not found:
                    break
                if look + 1 < _LOOKS:  # somebody may have fired between two of our reads
                    await asyncio.sleep(settle / _LOOKS)
            else:
                for each in found:
                    yield each

    async def _schedule(self, job_id: UUID, count: Count, history_days: int) -> list[Json]:
        view = (await self.store.jobs([job_id]))[0]
        if view is None:
            return []
        job, now = view.job, await self.now()
        since = max(job.created_at, now - (history_days - 1) * DAY)
        records = await self._records(job, since)
        versions = await self._definitions(job)
        calendars = await self.calendars_of(job)
        findings = [_finding("repeated", job.id, f"occurrence {run} has two records") for run in repeated(records)]
        if not all(can_be_counted(version.document, calendars) for version in versions):
            count.not_counted += 1
            return [*findings, *await self._next(job)]
        definitions = [Definition(version.since, version.document) for version in versions]
        kept = account(job, definitions, _not_before(records, job, since), since, calendars=calendars)
        count.occurrences += kept.expected
        if not kept.balanced and not (since > job.created_at and _reaches_over(records)):
            findings.append(_unbalanced(job, kept))
        return [*findings, *await self._next(job)]

    async def _next(self, job: Job) -> list[Json]:
        """What comes next is what the schedule says, also after time zones or calendars have changed."""
        if job.state is not JobState.ACTIVE or job.next_at is None:
            return []
        try:
            following = following_occurrence(job, job.fired_through, await self.calendars_of(job))
        except InvalidInput as error:  # its calendar is gone
            return [_finding("schedule", job.id, f"cannot be planned: {error}")]
        if following is not None and following.nominal == job.next_at:
            return []
        says = "nothing" if following is None else utc_text(following.nominal)
        return [_finding("moved", job.id, f"is planned for {utc_text(job.next_at)}; its schedule says {says}")]

    async def _dead_letters(self, count: Count) -> AsyncIterator[Json]:
        last: UUID | None = None
        while page := await self.store.dead_letters(
            RunFilter(namespace=self.settings.namespace, after_id=last), limit=_PAGE
        ):
            count.dead_letters += len(page)
            for run in page:
                if run.state is not State.FAILED:
                    yield _finding("dead_letter", run.id, f"is among the dead letters and is {run.state.word}")
            last = page[-1].id

    async def _running(self, count: Count, settle: float) -> AsyncIterator[Json]:
        suspects = await self._orphans(count)
        if suspects:
            await asyncio.sleep(settle)  # a rescue may be under way
            still = await self._orphans(Count())
            for run_id, worker in suspects.items():
                if still.get(run_id) == worker:
                    yield _finding("orphan", run_id, f"is running on worker {worker}, which does not live")

    async def _orphans(self, count: Count) -> dict[UUID, UUID | None]:
        found: dict[UUID, UUID | None] = {}
        last: UUID | None = None
        where = RunFilter(namespace=self.settings.namespace, status=("running",))
        while page := await self.store.list_runs(
            RunFilter(namespace=where.namespace, status=where.status, after_id=last), limit=_PAGE
        ):
            living = {worker.id for worker in await self.store.workers()}
            count.running += len(page)
            found |= {run.id: run.worker for run in page if run.state is State.RUNNING and run.worker not in living}
            last = page[-1].id
        return found

    async def _keys(self, count: Count, settle: float) -> AsyncIterator[Json]:
        """Each live job holds its key, and nobody else."""
        async for view in self._all_jobs(JobFilter(namespace=self.settings.namespace, status=_LIVE)):
            key = view.job.key
            if key is None:
                continue
            count.keys += 1
            if await self.store.find_key(key, self.settings.namespace) == view.job.id:
                continue
            await asyncio.sleep(settle / _LOOKS)
            again = (await self.store.jobs([view.job.id]))[0]
            holder = await self.store.find_key(key, self.settings.namespace)
            if again is not None and again.status in _LIVE and again.job.key == key and holder != view.job.id:
                held = "nobody" if holder is None else f"job {holder}"
                yield _finding("key", view.job.id, f"has the key {key!r}, which {held} holds")

    async def _all_jobs(self, where: JobFilter) -> AsyncIterator[JobView]:
        last: UUID | None = None
        while page := await self.store.list_jobs(where, after=last, limit=_PAGE):
            for view in page:
                yield view
            last = page[-1].job.id

    async def _records(self, job: Job, since: Instant) -> list[Run]:
        """From a day earlier on, to see what reaches over the beginning."""
        found: list[Run] = []
        last: UUID | None = None
        while page := await self.store.list_runs(
            RunFilter(namespace=job.lane.namespace, job_id=job.id, start=since - DAY, after_id=last), limit=_PAGE
        ):
            found += page
            last = page[-1].id
        return found


def _not_before(records: list[Run], job: Job, since: Instant) -> list[Run]:
    """All of a young job; of an old one what lies within what history keeps."""
    return records if since == job.created_at else [run for run in records if run.scheduled_at > since]


def _reaches_over(records: list[Run]) -> bool:
    """A record that stands for several instants may begin where history is no more."""
    return any(run.count > 1 for run in records)


def _unbalanced(job: Job, kept: Account) -> Json:
    told = (
        f"{kept.expected} occurrences were expected and {kept.recorded} are recorded: "
        f"{kept.ran} ran, {kept.skipped} skipped, {kept.cancelled} cancelled, {kept.pending} pending"
    )
    return _finding("conservation", job.id, told)


def _finding(rule: str, subject: UUID, detail: str) -> Json:
    return {"rule": rule, "id": str(subject), "detail": detail}
