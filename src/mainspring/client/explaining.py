"""Calls that say why: of a job, a run, and an instant of a job."""

from __future__ import annotations

from uuid import UUID

from mainspring.client.reading import read_id
from mainspring.client.timeline import Timeline
from mainspring.client.views import Json
from mainspring.core.backfill import Definition, PastInstant, backfill_id, past_instants
from mainspring.core.errors import InvalidInput, NotFound
from mainspring.core.explain import Explanation, Surroundings, explain_instant, explain_job, explain_run
from mainspring.core.firing import anchor_of, following_occurrence, schedule_of
from mainspring.core.ids import occurrence_id
from mainspring.core.model import DAY, Instant, Job, Kind, Lane, Run, RunFilter
from mainspring.core.occurrences import count_between, previous_before
from mainspring.core.sources import Occurrence
from mainspring.core.times import read_instant, utc_text

_LIVE = ("held", "queued", "running", "retrying", "unknown")
_RECORDS_LOOKED_AT = 100


class Explaining(Timeline):
    """The group of calls that explain."""

    async def explain_run(self, run_id: str) -> Json:
        identity = read_id(run_id, "run")
        run = (await self.store.runs([identity]))[0]
        if run is None:
            raise NotFound(f"there is no run {identity}")
        around = await self._around(run.lane)
        beside = [other for other in await self._live(run.job_id) if other.id != run.id] if not run.state.ended else []
        return _told(f"run {run.id}", explain_run(run, beside, around))

    async def explain_job(self, job_id: str, at: str | None = None) -> Json:
        """Why the job does not run now; with `at`, what became or becomes of that instant."""
        view = await self._view(read_id(job_id, "job"))
        job = view.job
        if at is not None:
            return await self._explain_instant(job, read_instant(at, "/at"))
        subject = f"job {job.id}"
        around = await self._around(job.lane)
        if job.kind is not Kind.RECURRING and view.status not in ("scheduled", "paused", "waiting"):
            run = view.last_run or next(iter(await self.store.runs([job.id])), None)
            if run is not None:
                return _told(subject, explain_run(run, (), around))
        coming = await self._coming(job)
        live = await self._live(job.id) if job.kind is Kind.RECURRING else []
        return _told(subject, explain_job(job, view.status, coming, live, around))

    async def _explain_instant(self, job: Job, at: Instant) -> Json:
        subject = f"job {job.id} at {utc_text(at)}"
        around = await self._around(job.lane)
        if job.kind is not Kind.RECURRING:
            due = job.scheduled_at if job.scheduled_at is not None else job.created_at
            own = Occurrence(due, due)
            record = next(iter(await self.store.runs([occurrence_id(job.id, due)])), None)
            found = own if due == at else None
            return _told(subject, explain_instant(job, at, around, occurrence=found, record=record, neighbours=[own]))
        occurrence = await self._occurrence_at(job, at)
        record = await self._record_of(job, at if occurrence is None else occurrence.nominal)
        near = await self._near(job, at) if occurrence is None and record is None else []
        return _told(subject, explain_instant(job, at, around, occurrence=occurrence, record=record, neighbours=near))

    async def _occurrence_at(self, job: Job, at: Instant) -> Occurrence | None:
        """By the definition of that time; a time given in whole seconds stands for the instant within that second."""
        versions = await self._definitions(job)
        definitions = [Definition(version.since, version.document) for version in versions]
        calendars = await self.calendars()
        widened = at + 1 if at % 1_000_000 else at + 1_000_000
        found: PastInstant | None = next(past_instants(definitions, job.id, at, widened, calendars=calendars), None)
        if found is not None:
            return found.occurrence
        # Jitter and spread move what is due: it may be known by the instant at which it starts.
        earlier = next(past_instants(definitions, job.id, at - DAY, at, newest_first=True, calendars=calendars), None)
        moved = earlier is not None and at <= earlier.occurrence.scheduled_at < widened
        return earlier.occurrence if moved and earlier is not None else None

    async def _record_of(self, job: Job, nominal: Instant) -> Run | None:
        """Its run, or the record of a skip that it falls under."""
        for run in await self.store.runs([occurrence_id(job.id, nominal), backfill_id(job.id, nominal)]):
            if run is not None:
                return run
        where = RunFilter(namespace=job.lane.namespace, status=("skipped",), job_id=job.id, end=nominal + 1)
        for record in await self.store.list_runs(where, limit=_RECORDS_LOOKED_AT):
            if record.count > 1 and await self._covers(job, record, nominal):
                return record
        return None

    async def _covers(self, job: Job, record: Run, nominal: Instant) -> bool:
        schedule = schedule_of(record.document, job.id)
        calendars = await self.calendars()
        counts = count_between(
            schedule, record.scheduled_at, nominal + 1, anchor=anchor_of(job.id), calendars=calendars
        )
        return counts.fires + counts.gap + counts.closed <= record.count

    async def _near(self, job: Job, at: Instant) -> list[Occurrence]:
        schedule, calendars = schedule_of(job.document, job.id), await self.calendars()
        before = previous_before(schedule, at, anchor=anchor_of(job.id), calendars=calendars)
        after = following_occurrence(job, at, calendars)
        return [each for each in (before, after) if each is not None]

    async def _coming(self, job: Job) -> Occurrence | None:
        if job.next_at is None or job.scheduled_at is None:
            return None
        if job.kind is not Kind.RECURRING:
            return Occurrence(job.next_at, job.scheduled_at)
        return following_occurrence(job, job.next_at - 1, await self.calendars_of(job))

    async def _live(self, job_id: UUID) -> list[Run]:
        where = RunFilter(namespace=self.settings.namespace, status=_LIVE, job_id=job_id)
        return [run for run in await self.store.list_runs(where, limit=_RECORDS_LOOKED_AT) if not run.state.ended]

    async def _around(self, lane: Lane) -> Surroundings:
        queues = {queue.name: queue for queue in await self.store.queues(lane.namespace)}
        workers = [
            worker
            for worker in await self.store.workers()
            if worker.namespace == lane.namespace
            and not worker.draining
            and (not worker.queues or lane.queue in worker.queues)
        ]
        known = await self.store.known_tasks([lane.task], lane.namespace)
        return Surroundings(
            now=await self.now(),
            registered=bool(known),
            queue_paused=lane.queue in queues and queues[lane.queue].paused,
            workers=len(workers),
            free_slots=sum(max(0, worker.slots - worker.running) for worker in workers),
        )


def read_at(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidInput.at("/at", "must be a time")


def _told(subject: str, explanation: Explanation) -> Json:
    return {
        "subject": subject,
        "status": explanation.status,
        "why": explanation.why,
        "gates": [gate._asdict() for gate in explanation.gates],
    }
