"""Calls about a job's past: its earlier definitions, and runs of instants that have gone by."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from mainspring.client.calendars import Calendars
from mainspring.client.coming import occurrences_json
from mainspring.client.identity import Ids
from mainspring.client.reading import read_id, read_limit
from mainspring.client.views import Json, job_fields
from mainspring.core import fields
from mainspring.core.backfill import Definition, PastInstant, backfill_id, past_instants
from mainspring.core.errors import Conflict, InvalidInput
from mainspring.core.fields import choice, fields_of, optional
from mainspring.core.ids import occurrence_id
from mainspring.core.model import Instant, Job, Kind, Origin
from mainspring.core.states import State
from mainspring.core.times import read_instant, utc_text
from mainspring.ports.store import NewRun
from mainspring.ports.timetables import JobVersion

BACKFILL_DEFAULT = 100
BACKFILL_MAX = 1000
_LOOKED_AT_MAX = 100_000
_AT_ONCE = 100
_OVERLAPS = ("skip", "queue_one", "queue_all", "cancel", "allow")
_ORDERS = ("oldest", "newest", "asc", "desc")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a backfill is asked to do."""

    start: Instant
    end: Instant
    limit: int = BACKFILL_DEFAULT
    newest_first: bool = False
    overlap: str | None = None
    rerun: bool = False
    dry_run: bool = False


class Timeline(Calendars):
    """The group of calls about what was."""

    async def job_versions(self, job_id: str) -> Json:
        """The definitions of the job, newest first, each with the time in which it was in force."""
        view = await self._view(read_id(job_id, "job"))
        versions = await self._definitions(view.job)
        ends = [*(version.since for version in versions[1:]), None]
        items = [
            _version_json(view.job, version, until, self.settings.misfire)
            for version, until in zip(versions, ends, strict=True)
        ]
        return {"items": items[::-1], "next": None}

    async def backfill_job(self, job_id: str, body: Mapping[str, object], *, ids: Ids | None = None) -> Json:
        """Runs of past instants, by the definition in force at each; those that have a run are left out."""
        asked = read_backfill(body)
        view = await self._view(read_id(job_id, "job"))
        job = view.job
        if job.kind is not Kind.RECURRING:
            raise Conflict(f"job {job.id} is {job.kind.word}: only a recurring job has instants to fill")
        if view.status == "cancelled":
            raise Conflict(f"job {job.id} is cancelled: it runs no more")
        now = await self.now()
        end = min(asked.end, now, now if job.state.ended else job.fired_through + 1)
        versions = await self._definitions(job)
        found, more = await self._missing(job, versions, replace(asked, end=end))
        made: list[UUID] = []
        if not asked.dry_run:
            made = await self._fill(job, versions, [each for each in found if each.occurrence.fires], asked, now, ids)
            self.changed(job.id, "backfill")
        items = [occurrences_json([each.occurrence], each.zone)[0] for each in found]
        answer: Json = {"items": items, "count": len(items), "more": more, "dry_run": asked.dry_run}
        return answer if asked.dry_run else {**answer, "runs": [str(run) for run in made]}

    async def _definitions(self, job: Job) -> list[JobVersion]:
        """Oldest first; a job that is not recurring has the one it has."""
        found = await self.store.job_versions(job.id)
        return found or [JobVersion(job.version, job.created_at, job.lane, job.priority, job.payload, job.document)]

    async def _missing(self, job: Job, versions: Sequence[JobVersion], asked: Asked) -> tuple[list[PastInstant], bool]:
        """At most `limit` instants that can run, and whether there are more."""
        walked = past_instants(
            [Definition(version.since, version.document) for version in versions],
            job.id,
            asked.start,
            asked.end,
            newest_first=asked.newest_first,
            calendars=await self.calendars(),
        )
        bounded = itertools.islice(walked, _LOOKED_AT_MAX)
        found: list[PastInstant] = []
        room = asked.limit
        while chunk := list(itertools.islice(bounded, _AT_ONCE)):
            had = set() if asked.rerun else await self._had(job, chunk)
            for each in chunk:
                if each.occurrence.nominal in had:
                    continue
                if each.occurrence.fires:
                    if room == 0:
                        return found, True
                    room -= 1
                found.append(each)
        return found, next(walked, None) is not None

    async def _had(self, job: Job, instants: Sequence[PastInstant]) -> set[Instant]:
        """Those of the instants that have a run; a skipped occurrence is none."""
        nominal = [each.occurrence.nominal for each in instants]
        ids = [name(job.id, each) for each in nominal for name in (occurrence_id, backfill_id)]
        known = {run.id for run in await self.store.runs(ids) if run is not None and run.state is not State.SKIPPED}
        return {each for each in nominal if {occurrence_id(job.id, each), backfill_id(job.id, each)} & known}

    async def _fill(
        self,
        job: Job,
        versions: Sequence[JobVersion],
        instants: Sequence[PastInstant],
        asked: Asked,
        now: Instant,
        ids: Ids | None,
    ) -> list[UUID]:
        fresh = (ids or self.ids)(now, len(instants)) if asked.rerun and instants else ()
        runs = [
            _new_run(
                job, versions[each.definition], each, asked, self.settings.created_by, fresh[place] if fresh else None
            )
            for place, each in enumerate(instants)
        ]
        if asked.overlap in (None, "allow", "queue_all"):
            batches = [runs[low : low + _AT_ONCE] for low in range(0, len(runs), _AT_ONCE)]
            return [run.id for batch in batches for run in await self.store.add_runs(batch, respect_overlap=True)]
        return [run.id for run in runs if await self._added(run)]

    async def _added(self, run: NewRun) -> bool:
        """Whether the rule that the backfill names lets it in."""
        try:
            await self.store.add_runs([run], respect_overlap=True)
        except Conflict:
            return False
        return True


def read_backfill(body: object) -> Asked:
    known = {
        "from": fields.instant,
        "to": fields.instant,
        "limit": optional(lambda value, pointer: read_limit(value, pointer, BACKFILL_MAX)),
        "order": optional(choice(*_ORDERS)),
        "overlap": optional(choice(*_OVERLAPS)),
        "rerun": optional(_flag),
        "dry_run": optional(_flag),
    }
    given = fields_of(body, "", known, '{"from": "2026-12-01T00:00:00Z", "to": "2026-12-02T00:00:00Z"}')
    for name in ("from", "to"):
        if name not in given:
            raise InvalidInput.at(f"/{name}", "must say where the range begins and ends; `to` is not included")
    start, end = read_instant(given["from"], "/from"), read_instant(given["to"], "/to")
    if end <= start:
        raise InvalidInput.at("/to", "is not after from, so the range is empty")
    limit, overlap = given.get("limit"), given.get("overlap")
    return Asked(
        start,
        end,
        limit if isinstance(limit, int) else BACKFILL_DEFAULT,
        newest_first=given.get("order") in ("newest", "desc"),
        overlap=None if overlap is None else str(overlap),
        rerun=given.get("rerun") is True,
        dry_run=given.get("dry_run") is True,
    )


def _flag(value: object, pointer: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput.at(pointer, "must be true or false")


def _new_run(
    job: Job, version: JobVersion, instant: PastInstant, asked: Asked, by: str | None, identity: UUID | None
) -> NewRun:
    document = version.document
    if asked.overlap is not None:
        given: dict[str, object] = json.loads(document or "{}")
        document = fields.encode_document({**given, "overlap": asked.overlap})
    return NewRun(
        identity or backfill_id(job.id, instant.occurrence.nominal),
        job.id,
        Origin.BACKFILL,
        scheduled_at=instant.occurrence.scheduled_at,
        payload=version.payload,
        document=document,
        catch_up=asked.overlap is None,
        created_by=by,
        lane=version.lane,
        priority=version.priority,
    )


def _version_json(job: Job, version: JobVersion, until: Instant | None, misfire: str | None) -> Json:
    then = replace(
        job, lane=version.lane, priority=version.priority, payload=version.payload, document=version.document
    )
    ended = None if until is None else utc_text(until)
    return {"version": version.version, "since": utc_text(version.since), "until": ended, **job_fields(then, misfire)}
