"""Calls about jobs: create, change, read, and what comes next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import msgspec

from mainspring.client import editing
from mainspring.client.base import Base, task_of
from mainspring.client.coming import coming, coming_of, compared
from mainspring.client.identity import Ids
from mainspring.client.reading import read_id, read_job_filter, read_limit, read_page, read_run_filter, write_cursor
from mainspring.client.submission import Request, prepare, prepare_all
from mainspring.client.views import Json, etag_of, job_json, run_json
from mainspring.core import fields
from mainspring.core.errors import Conflict, InvalidInput, KeyTaken, NotFound, StaleVersion, TooLarge
from mainspring.core.fields import Problems, choice, fields_of, refuse_unknown
from mainspring.core.model import BATCH_JOBS_MAX, DAY, Instant, Job, JobState, JobView, Kind, Origin, Run
from mainspring.core.submission import read_submission
from mainspring.core.times import read_instant
from mainspring.ports.calendar_book import names_calendar
from mainspring.ports.store import JobEdit, NewRun, Submitted

NEXT_MAX = 1000
_EDIT_TRIES = 8
_PREVIEWED = (
    "at", "delay", "cron", "dialect", "every_nth", "timezone", "every", "rrule", "dst", "calendar", "start_at", "end_at", "max_runs",
    "jitter", "spread",
)  # fmt: skip
_UNKNOWN_TASK = "no worker has registered task {!r}: the job is held until one does"

Edit = Callable[[JobView, Instant], JobEdit | None]


class Jobs(Base):
    """The group of calls about jobs; arguments and answers are the JSON objects of the API."""

    async def create_job(
        self, document: Mapping[str, object], *, strict_tasks: bool = False, idempotency_key: str | None = None
    ) -> Json:
        """Stores the job and answers it."""
        fingerprint = msgspec.json.encode(["create_job", document], order="deterministic")

        async def act(ids: Ids | None) -> tuple[int, bytes]:
            created = await self.create(document, ids=ids, strict_tasks=strict_tasks)
            return 201, msgspec.json.encode(created)

        _, body = await self.once(idempotency_key, fingerprint, act)
        return msgspec.json.decode(body, type=Json)

    async def create(self, document: object, *, ids: Ids | None = None, strict_tasks: bool = False) -> Json:
        """The same; `ids` come from an Idempotency-Key, and an earlier try may have stored them."""
        request = (await self.requests([document], strict=strict_tasks))[0]
        now = await self.now()
        identity = (ids or self.ids)(now, 1)[0]
        job = prepare(
            request,
            identity,
            now,
            namespace=self.settings.namespace,
            created_by=self.settings.created_by,
            calendars=await self.calendars_for([document]),
        )
        submitted = (await self.submit_prepared([job], repeat=ids is not None))[0]
        return self._with_warning(await self._view(submitted.id), submitted)

    async def create_jobs(self, documents: Sequence[object], *, strict_tasks: bool = False) -> Json:
        """Stores all of them in one transaction, or none; answers their ids in order."""
        return await self.create_batch(documents, strict_tasks=strict_tasks)

    async def create_batch(
        self,
        documents: Sequence[object],
        *,
        ids: Ids | None = None,
        strict_tasks: bool = False,
    ) -> Json:
        """The same; `ids` come from an Idempotency-Key, and an earlier try may have stored them."""
        if len(documents) > BATCH_JOBS_MAX:
            raise TooLarge(f"a batch holds at most {BATCH_JOBS_MAX} jobs; this one has {len(documents)}: split it")
        requests = await self.requests(documents, strict=strict_tasks)
        submitted = await self.submit(requests, ids=ids)
        unknown = {
            str(task_of(document)) for document, each in zip(documents, submitted, strict=True) if not each.known
        }
        answer: Json = {"items": [{"id": str(each.id)} for each in submitted]}
        if unknown:
            answer["warnings"] = [_UNKNOWN_TASK.format(name) for name in sorted(unknown)]
        return answer

    async def submit(
        self,
        requests: Sequence[Request],
        *,
        ids: Ids | None = None,
    ) -> list[Submitted]:
        """Checks the requests, gives them ids and stores them: one store call, whatever their number."""
        now = await self.now()
        made = (ids or self.ids)(now, len(requests))
        jobs = prepare_all(
            requests,
            made,
            now,
            namespace=self.settings.namespace,
            created_by=self.settings.created_by,
            calendars=await self.calendars_for(request.document for request in requests),
        )
        return await self.submit_prepared(jobs, repeat=ids is not None)

    async def put_job_by_key(self, key: str, document: Mapping[str, object], *, if_match: str | None = None) -> Json:
        """Creates the job that holds this key, or replaces its definition in place."""
        return (await self.put_by_key(key, document, if_match=if_match))[0]

    async def put_by_key(self, key: str, document: object, *, if_match: str | None = None) -> tuple[Json, bool]:
        """The job, and whether it is new; with `if_match` only a job of that version is replaced, and none created."""
        given = fields.members(document, "", '{"task": "report", "cron": "0 9 * * *"}')
        if given.get("key", key) != key:
            raise InvalidInput.at("/key", f"differs from the key in the address, {key!r}; leave it out")
        given = {**given, "key": key}
        for _ in range(_EDIT_TRIES):
            holder = await self.store.find_key(key, self.settings.namespace)
            if holder is None and if_match is not None:
                made = self.ids(await self.now(), 1)[0]
                (await self.requests([given]))[0].read(made)  # what is wrong with the body is said first
                raise StaleVersion(f"no job holds key {key!r}, and If-Match asks for {if_match}")
            if holder is None:
                try:
                    return await self.create(given), True
                except KeyTaken:
                    continue
            view = (await self.store.jobs([holder]))[0]
            if view is not None:
                return await self._replace(view, given, if_match), False
        raise Conflict(f"key {key!r} changes hands all the time; try again")

    async def _replace(self, view: JobView, given: Mapping[str, object], if_match: str | None) -> Json:
        if view.job.kind is Kind.IMMEDIATE or view.status not in ("scheduled", "active", "paused"):
            raise KeyTaken(str(view.job.key), str(view.job.id))
        read = (await self.requests([given]))[0].read(view.job.id)
        definition = editing.Definition(read, restarts=read.delay is not None)
        calendars = await self.calendars()

        def edit(view: JobView, now: Instant) -> JobEdit | None:
            _check_version(view.job, if_match)
            editing.refuse_unless_changeable(view, "change")
            return editing.redefine(view.job, definition, now, self.settings.misfire, calendars)

        return self._json(await self._edit(view.job.id, edit, "replace"))

    async def get_job(self, job_id: str) -> Json:
        return self._json(await self._view(read_id(job_id, "job")))

    async def list_jobs(self, **filters: object) -> Json:
        """Newest first; `next` is the cursor of the following page."""
        page = read_page(filters, "jobs")
        where = read_job_filter(filters, await self.now(), namespace=self.settings.namespace)
        found = await self.store.list_jobs(where, after=page.after, limit=page.limit + 1)
        more = len(found) > page.limit
        found = found[: page.limit]
        if any(names_calendar(view.job.document) for view in found):
            await self.calendars()
        return {
            "items": [self._json(view) for view in found],
            "next": write_cursor("jobs", found[-1].job.id) if more else None,
        }

    async def soonest_jobs(self, count: int) -> list[Json]:
        """Those that fire next, within a year; for the pages."""
        due = await self.store.due_jobs(None, until=await self.now() + 366 * DAY, limit=count)
        found = await self.store.jobs([job.id for job in due if job.lane.namespace == self.settings.namespace])
        views = [view for view in found if view is not None]
        if any(names_calendar(view.job.document) for view in views):
            await self.calendars()
        return [self._json(view) for view in views]

    async def patch_job(self, job_id: str, changes: Mapping[str, object], *, if_match: str | None = None) -> Json:
        """Lays the changes over the job."""
        calendars = await self.calendars()
        await self._refuse_misfit(read_id(job_id, "job"), changes)

        def edit(view: JobView, now: Instant) -> JobEdit | None:
            _check_version(view.job, if_match)
            editing.refuse_unless_changeable(view, "change")
            definition = editing.merge(view.job, changes)
            return editing.redefine(view.job, definition, now, self.settings.misfire, calendars)

        return self._json(await self._edit(read_id(job_id, "job"), edit, "change"))

    async def _refuse_misfit(self, identity: UUID, changes: object) -> None:
        """A payload must fit what workers said of the task, here as at a submit."""
        if not isinstance(changes, Mapping) or not {"payload", "task"} & changes.keys():
            return
        job = (await self._view(identity)).job
        payload = changes["payload"] if "payload" in changes else msgspec.json.decode(job.payload)
        request = (await self.requests([{"task": changes.get("task", job.lane.task), "payload": payload}]))[0]
        if request.problems:
            raise InvalidInput(request.problems)

    async def delete_job(self, job_id: str, *, if_match: str | None = None) -> Json:
        """Cancels the job and removes its definition; answers it as it was left."""
        identity = read_id(job_id, "job")
        view = await self._view(identity)
        _check_version(view.job, if_match)
        outcome = (await self.store.cancel([identity], delete=True, by=self.settings.created_by))[0]
        self.changed(identity, "delete")
        answer = self._json(view)
        runs = await self._last_runs(view, (*outcome.ended, *outcome.asked))
        if view.job.kind is Kind.RECURRING or not runs:
            answer["status"] = "cancelled" if outcome.job_changed and not view.job.state.ended else view.status
            answer["next_run_at"] = None
        if runs:
            answer["last_run"] = {key: run_json(runs[0])[key] for key in ("id", "status", "finished_at")}
            if view.job.kind is not Kind.RECURRING:
                answer["status"] = runs[0].state.word
        return answer

    async def _last_runs(self, view: JobView, touched: Sequence[UUID]) -> list[Run]:
        """The newest run as the cancel left it."""
        newest = max(touched) if touched else None
        if newest is None and view.last_run is not None:
            newest = view.last_run.id
        return [] if newest is None else [run for run in await self.store.runs([newest]) if run is not None]

    async def pause_job(self, job_id: str) -> Json:
        calendars = await self.calendars()

        def edit(view: JobView, now: Instant) -> JobEdit | None:
            if view.job.state is JobState.PAUSED:
                return None
            editing.refuse_unless_changeable(view, "pause")
            return editing.pause(view.job, now, self.settings.misfire, calendars)

        view = await self._edit(read_id(job_id, "job"), edit, "pause")
        if view.job.state is JobState.FINISHED:
            raise Conflict(f"job {job_id} is finished: it takes no pause")
        return self._json(view)

    async def resume_job(self, job_id: str, body: Mapping[str, object] | None = None) -> Json:
        """What fell due during the pause is skipped, unless `catch_up` asks for it."""
        given = fields_of(body or {}, "", {"catch_up": choice("once", "all")}, '{"catch_up": "once"}')
        catch_up = given.get("catch_up")
        calendars = await self.calendars()

        def edit(view: JobView, now: Instant) -> JobEdit | None:
            if view.job.state in (JobState.ACTIVE, JobState.SCHEDULED) and view.status in ("active", "scheduled"):
                return None
            editing.refuse_unless_changeable(view, "resume")
            return editing.resume(view.job, now, None if catch_up is None else str(catch_up), calendars)

        return self._json(await self._edit(read_id(job_id, "job"), edit, "resume"))

    async def cancel_job(self, job_id: str) -> Json:
        """Ends what has not ended, finally; of a recurring job its unfinished runs as well."""
        identity = read_id(job_id, "job")
        view = await self._view(identity)
        if view.status == "cancelled":
            return self._json(view)
        outcome = (await self.store.cancel([identity], by=self.settings.created_by))[0]
        if not (outcome.job_changed or outcome.ended or outcome.asked):
            after = await self._view(identity)
            if after.status != "cancelled":
                raise Conflict(f"job {identity} is {after.status}: there is nothing left to cancel")
        self.changed(identity, "cancel")
        return self._json(await self._view(identity))

    async def trigger_job(self, job_id: str, *, ids: Ids | None = None) -> Json:
        """Runs the job now, whatever its schedule; answers the run."""
        identity = read_id(job_id, "job")
        view = await self._view(identity)
        if view.status == "cancelled":
            raise Conflict(f"job {identity} is cancelled: it runs no more")
        now = await self.now()
        new = NewRun((ids or self.ids)(now, 1)[0], identity, Origin.TRIGGER, created_by=self.settings.created_by)
        made = await self.add_run(new, again=ids is not None, respect_overlap=True)
        self.changed(identity, "trigger")
        return run_json(made, payload=True)

    async def add_run(
        self, new: NewRun, *, again: bool = False, respect_overlap: bool = False, redeem: bool = False
    ) -> Run:
        """One run beside the schedule; `again`: an earlier try of the same request may have made it."""
        if again and (found := (await self.store.runs([new.id]))[0]) is not None:
            return found
        made = await self.store.add_runs([new], respect_overlap=respect_overlap, redeem_dead_letters=redeem)
        return made[0]

    async def next_occurrences(self, job_id: str, count: int | str = 10) -> Json:
        """The coming occurrences of the job."""
        wanted = read_limit(count, "/count", NEXT_MAX)
        view = await self._view(read_id(job_id, "job"))
        return coming_of(view.job, await self.now(), wanted, await self.calendars_of(view.job))

    async def preview(self, document: Mapping[str, object]) -> Json:
        """The occurrences of a schedule that need not be stored, compared with those of a job that is."""
        given = dict(fields.members(document, "", '{"cron": "0 9 * * *"}'))
        problems = Problems()
        known = (*_PREVIEWED, "count", "from", "compare_with")
        refuse_unknown([name for name in given if name not in known], known, "", problems)
        problems.raise_if_any()
        count = read_limit(given.pop("count", 10), "/count", NEXT_MAX)
        start, other = given.pop("from", None), given.pop("compare_with", None)
        now = await self.now()
        read = read_submission({**given, "task": "preview"})
        begin = now + 1 if start is None else read_instant(start, "/from")
        made = self.ids(now, 1)[0]
        calendars = await self.calendars()
        if other is None:
            return coming(read, made, now, begin, count, calendars)
        if not isinstance(other, str):
            raise InvalidInput.at("/compare_with", "must be the id of a job")
        view = await self._view(read_id(other, "job"))
        return compared(read, view.job, now, begin, count, calendars)

    async def job_runs(self, job_id: str, **paging: object) -> Json:
        """The runs and skipped occurrences of the job, newest first."""
        view = await self._view(read_id(job_id, "job"))
        return await self.runs_where({**paging, "job_id": str(view.job.id)}, "runs")

    async def runs_where(self, filters: Mapping[str, object], kind: str) -> Json:
        """A page of runs."""
        page = read_page(filters, kind)
        where = read_run_filter(filters, after=page.after, namespace=self.settings.namespace)
        source = self.store.dead_letters if kind == "dead" else self.store.list_runs
        found = await source(where, limit=page.limit + 1)
        more = len(found) > page.limit
        found = found[: page.limit]
        return {
            "items": [run_json(run) for run in found],
            "next": write_cursor(kind, found[-1].id) if more else None,
        }

    async def _view(self, identity: UUID) -> JobView:
        view = (await self.store.jobs([identity]))[0]
        if view is None:
            raise NotFound(f"there is no job {identity}")
        await self.calendars_of(view.job)
        return view

    async def _edit(self, identity: UUID, edit: Edit, action: str) -> JobView:
        """Reads, decides and writes until nobody came in between."""
        for _ in range(_EDIT_TRIES):
            view = await self._view(identity)
            decided = edit(view, await self.now())
            if decided is None:
                return view
            if await self.store.change(decided) is not None:
                self.changed(identity, action)
                return await self._view(identity)
        raise Conflict(f"job {identity} is being changed by others all the time; try again")

    def _json(self, view: JobView) -> Json:
        return job_json(view, self.settings.misfire, self.book.of(self.settings.namespace))

    def _with_warning(self, view: JobView, submitted: Submitted) -> Json:
        answer = self._json(view)
        if not submitted.known:
            answer["warnings"] = [_UNKNOWN_TASK.format(view.job.lane.task)]
        return answer


def _check_version(job: Job, if_match: str | None) -> None:
    if if_match is None or if_match.strip() == "*":
        return
    wanted = [each.strip().removeprefix("W/") for each in if_match.split(",")]
    if etag_of(job.version) not in wanted:
        raise StaleVersion(f"job {job.id} has version {job.version}, not {if_match}; read it again")
