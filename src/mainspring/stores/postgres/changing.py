"""What users do to jobs and runs after they were submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from mainspring.core.errors import Conflict, NotFound
from mainspring.core.ids import instant_of_id
from mainspring.core.model import Instant, Job, JobState, Kind, Run, SkippedOccurrence
from mainspring.core.overlap import OverlapVerdict, decide_overlap
from mainspring.core.policy import policy_of
from mainspring.core.states import State
from mainspring.ports.store import CancelOutcome, JobEdit, NewRun
from mainspring.stores.postgres.base import LOOKED_BACK
from mainspring.stores.postgres.ending import OVERLAP, Ended
from mainspring.stores.postgres.rows import run_of
from mainspring.stores.postgres.scheduling import HistoryRow, Plan, Scheduling, expiry_of, guards_hold, record_of
from mainspring.stores.postgres.submitting import RunRow

if TYPE_CHECKING:
    import asyncpg

RESOLUTIONS = (State.COMPLETED, State.FAILED, State.QUEUED)
PURGED_AT_ONCE = 5000


class Changing(Scheduling):
    """Edits, cancels, runs beside the schedule."""

    async def change(self, edit: JobEdit, *, now: Instant | None = None) -> Job | None:
        """The job's row is locked before anything is looked at: an edit and a firing follow one another."""
        if edit.lane is not None:
            await self._intern([edit.lane])
        edited, ready, workers = await self._transact(lambda connection: self._change(connection, edit, now))
        if edited is not None:
            self._jobs_changed()
        await self._lanes_ready(ready)
        self._call_workers(workers)
        return edited

    async def _change(
        self, connection: asyncpg.Connection, edit: JobEdit, now: Instant | None
    ) -> tuple[Job | None, set[int], set[UUID | None]]:
        plan = await self._plan(connection, [edit.job_id], now)
        job = plan.jobs.get(edit.job_id)
        if job is None:
            await self._refuse_unknown(connection, edit.job_id)
            return None, set(), set()
        if job.version != edit.version or not _is_current(job, edit):
            return None, set(), set()
        if edit.firing is not None:
            plan.apply(job, edit.firing)
        ready = await self._carry_out(connection, plan)
        fired = plan.jobs.get(edit.job_id)
        edited = _edited(fired or job, edit, plan.now)
        if fired is not None:
            await self._move_key(connection, job, edited)
            await self._store_edit(connection, edited, plan.now, versioned=edit.definition_changed)
        return edited, ready, {run.worker for run in plan.asked}

    async def _refuse_unknown(self, connection: asyncpg.Connection, job_id: UUID) -> None:
        if not await self._rows(connection, "standing", [job_id], instant_of_id(job_id) - LOOKED_BACK):
            raise NotFound(f"no job {job_id}")

    async def _move_key(self, connection: asyncpg.Connection, before: Job, edited: Job) -> None:
        namespace = edited.lane.namespace
        if before.key is not None and (before.key != edited.key or edited.state.ended):
            await self._rows(connection, "free_keys", [namespace], [before.key], [edited.id])
        if edited.key is None or edited.state.ended:
            return
        holders = await self._rows(connection, "holders", namespace, [edited.key])
        if not holders or holders[0]["job_id"] != edited.id:
            await self._take_keys(connection, [(namespace, edited.key, edited.id)])

    async def _store_edit(self, connection: asyncpg.Connection, job: Job, now: Instant, *, versioned: bool) -> None:
        await self._rows(
            connection, "edit_job", job.id, job.state, self._lane_ids[job.lane], job.priority, job.payload,
            job.document, job.key, job.expires_at, job.next_at, job.scheduled_at, job.fired_through, job.version, now,
            job.paused_at,
        )  # fmt: skip
        if versioned:
            await self._rows(connection, "add_versions", [job.id], now)

    # --- cancel, delete

    async def cancel(
        self,
        ids: Sequence[UUID],
        *,
        delete: bool = False,
        by: str | None = None,  # noqa: ARG002 - the audit that will hold it comes with its issue
        now: Instant | None = None,
    ) -> list[CancelOutcome]:
        if not ids:
            return []
        done = await self._transact(lambda connection: self._cancel(connection, list(ids), now, delete=delete))
        if done.jobs_changed:
            self._jobs_changed()
        await self._lanes_ready(done.ready)
        self._call_workers(done.workers)
        return done.outcomes

    async def _cancel(
        self, connection: asyncpg.Connection, ids: list[UUID], now: Instant | None, *, delete: bool
    ) -> _Cancelled:
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        owners = {row["id"]: row["job_id"] for row in await self._rows(connection, "jobs_of_runs", ids, since)}
        plan = await self._plan(connection, {*ids, *owners.values()}, now)
        standing = {row["job_id"] for row in await self._rows(connection, "standing", ids, since)}
        as_jobs = {one for one in ids if one in plan.jobs or one in standing}
        for one in ids:
            if one not in as_jobs and one not in owners:
                raise NotFound(f"no job or run {one}")
        locked = await self._rows(connection, "lock_runs_of", ids)
        done = _Cancelled()
        records = await self._cancel_rows(
            connection, plan, [one for one in dict.fromkeys(ids) if one in plan.jobs], done
        )
        runs = [row for row in locked if (row["id"] in owners and row["id"] in ids) or row["job_id"] in as_jobs]
        await self._cancel_live(connection, runs, plan.now, done)
        done.outcomes = [_outcome(one, one in as_jobs, runs, records, owners, done) for one in ids]
        if delete:
            await self._forget(connection, sorted(as_jobs), since)
            done.outcomes = [
                one._replace(job_changed=one.job_changed or name in as_jobs)
                for name, one in zip(ids, done.outcomes, strict=True)
            ]
        return done

    async def _cancel_rows(
        self, connection: asyncpg.Connection, plan: Plan, ids: Sequence[UUID], done: _Cancelled
    ) -> dict[UUID, UUID]:
        """Rows of `jobs`: a recurring one stays cancelled, a one-time one leaves a record; answers those records."""
        jobs = [plan.jobs[one] for one in ids if not plan.jobs[one].state.ended]
        done.jobs_changed = bool(jobs)
        done.changed = {job.id for job in jobs}
        keys = [(job.lane.namespace, job.key, job.id) for job in jobs if job.key is not None]
        if keys:
            await self._rows(connection, "free_keys", *[list(column) for column in zip(*keys, strict=True)])
        recurring = [job.id for job in jobs if job.kind is Kind.RECURRING]
        if recurring:
            await self._rows(connection, "cancel_jobs", recurring, plan.now)
        records = {job.id: _cancel_record(job, plan) for job in jobs if job.kind is not Kind.RECURRING}
        if records:
            await self._rows(connection, "drop_jobs", sorted(records))
            await self._add_history(connection, list(records.values()), plan.now)
        return {job_id: record.id for job_id, record in records.items()}

    async def _cancel_live(
        self, connection: asyncpg.Connection, runs: Sequence[asyncpg.Record], now: Instant, done: _Cancelled
    ) -> None:
        ended, asked, ready = await self._cancel_locked(connection, runs, now)
        done.ended, done.asked, done.ready = set(ended), set(asked), ready
        done.workers = {row["worker"] for row in runs if row["id"] in done.asked}

    async def _forget(self, connection: asyncpg.Connection, jobs: Sequence[UUID], since: Instant) -> None:
        if not jobs:
            return
        await self._rows(connection, "free_keys_of_jobs", jobs)
        await self._rows(connection, "drop_jobs", jobs)
        await self._rows(connection, "drop_versions", jobs)
        await self._rows(connection, "forget_live", jobs)
        await self._rows(connection, "forget_past_own", jobs, since)
        await self._rows(connection, "forget_past_others", jobs, since)

    # --- runs beside the schedule

    async def add_runs(
        self,
        runs: Sequence[NewRun],
        *,
        respect_overlap: bool = False,
        redeem_dead_letters: bool = False,
        now: Instant | None = None,
    ) -> list[Run]:
        if not runs:
            return []
        made, ready, workers, dropped = await self._transact(
            lambda connection: self._make_runs(
                connection, runs, now, respect_overlap=respect_overlap, redeem=redeem_dead_letters
            )
        )
        if dropped:
            self._jobs_changed()
        await self._lanes_ready(ready)
        self._call_workers(workers)
        return made

    async def _make_runs(
        self,
        connection: asyncpg.Connection,
        runs: Sequence[NewRun],
        now: Instant | None,
        *,
        respect_overlap: bool,
        redeem: bool,
    ) -> tuple[list[Run], set[int], set[UUID | None], bool]:
        plan = await self._plan(connection, {new.job_id for new in runs}, now)
        await self._refuse_taken_runs(connection, runs)
        sources = await self._sources(connection, plan, runs)
        if redeem:
            await self._redeem(connection, runs)
        if respect_overlap:
            await self._load_live(connection, plan, runs)
            for new in runs:
                if _overlap(plan, new, sources[new.id]) is OverlapVerdict.SKIP:
                    raise Conflict(
                        f"job {new.job_id} has a run that has not ended, and its overlap rule takes no other one now"
                    )
        for new in runs:
            _plan_run(plan, new, sources[new.id], respect_overlap=respect_overlap)
        ready = await self._carry_out(connection, plan)
        rows = await self._rows(connection, "live_by_id", [new.id for new in runs])
        made = {row["id"]: run_of(row) for row in rows}
        return [made[new.id] for new in runs], ready, {run.worker for run in plan.asked}, bool(plan.dropped)

    async def _refuse_taken_runs(self, connection: asyncpg.Connection, runs: Sequence[NewRun]) -> None:
        ids = [new.id for new in runs]
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        taken = {row["id"] for row in await self._rows(connection, "taken_run_ids", ids, since)}
        for position, one in enumerate(ids):
            if one in taken or one in ids[:position]:
                raise Conflict(f"run {one} exists already")

    async def _sources(
        self, connection: asyncpg.Connection, plan: Plan, runs: Sequence[NewRun]
    ) -> dict[UUID, Job | Run]:
        """What each new run takes its lane, priority, payload and document from."""
        replaced = [new.replaces for new in runs if new.replaces is not None]
        found = await self._runs_by_id(connection, replaced)
        standing = await self._standing_runs(connection, [new.job_id for new in runs if new.replaces is None])
        sources: dict[UUID, Job | Run] = {}
        for new in runs:
            if new.replaces is not None:
                source: Job | Run | None = found.get(new.replaces)
                missing = f"no run {new.replaces}"
            else:
                source = plan.jobs.get(new.job_id) or standing.get(new.job_id)
                missing = f"no job {new.job_id}"
            if source is None:
                raise NotFound(missing)
            if isinstance(source, Job) and source.state is JobState.CANCELLED:
                raise Conflict(f"job {new.job_id} is cancelled")
            made = sources[new.id] = new.over(source)
            plan.lanes.setdefault(made.lane, (await self._intern([made.lane]))[made.lane])
        return sources

    async def _runs_by_id(self, connection: asyncpg.Connection, ids: Sequence[UUID]) -> dict[UUID, Run]:
        if not ids:
            return {}
        since = min(map(instant_of_id, ids)) - LOOKED_BACK
        return {row["id"]: run_of(row) for row in await self._rows(connection, "runs_by_id", list(ids), since)}

    async def _standing_runs(self, connection: asyncpg.Connection, jobs: Sequence[UUID]) -> dict[UUID, Run]:
        if not jobs:
            return {}
        since = min(map(instant_of_id, jobs)) - LOOKED_BACK
        rows = await self._rows(connection, "standing", list(jobs), since)
        runs = await self._runs_by_id(connection, [row["id"] for row in rows])
        return {row["job_id"]: runs[row["id"]] for row in rows if row["id"] in runs}

    async def _redeem(self, connection: asyncpg.Connection, runs: Sequence[NewRun]) -> None:
        """Two replays at once: whoever deletes the dead letter makes the run, the other finds none."""
        wanted = [new.replaces for new in runs if new.replaces is not None]
        rows = await self._rows(connection, "redeem", wanted)
        redeemed = {row["id"] for row in rows}
        for new in runs:
            if new.replaces not in redeemed:
                raise Conflict(f"run {new.replaces} is no dead letter any more: it was replayed or discarded")
            redeemed.discard(new.replaces)

    async def _load_live(self, connection: asyncpg.Connection, plan: Plan, runs: Sequence[NewRun]) -> None:
        """Overlap of one-time jobs too: a retry of an ended run counts the job's other runs."""
        ids = [new.job_id for new in runs if new.job_id not in plan.live]
        plan.live |= await self._live_of(connection, ids)

    # --- single runs

    async def retry_now(self, run_id: UUID, *, now: Instant | None = None) -> bool:
        """A retrying run becomes queued at once."""
        rows = await self._write("retry_now", run_id, now)
        await self._lanes_ready(row["lane"] for row in rows)
        return bool(rows)

    async def resolve(
        self,
        run_id: UUID,
        state: int,
        *,
        note: str | None = None,
        by: str | None = None,  # noqa: ARG002 - the audit that will hold it comes with its issue
        now: Instant | None = None,
    ) -> bool:
        if state not in RESOLUTIONS:
            raise Conflict(f"an unknown run is resolved as completed, failed or queued, not as {State(state).word}")

        async def body(connection: asyncpg.Connection) -> tuple[bool, set[int]]:
            locked = await self._lock_runs(connection, [run_id])
            if run_id not in locked or locked[run_id]["state"] != State.UNKNOWN:
                return False, set()
            if state == State.QUEUED:
                rows = await self._rows(connection, "requeue_unknown", run_id, note)
                return True, {row["lane"] for row in rows}
            instant = await self._instant(connection, now)
            return True, await self._end_runs(connection, [Ended(run_id, state, reason=note)], instant)

        resolved, ready = await self._transact(body)
        await self._lanes_ready(ready)
        return resolved

    async def purge_queue(self, name: str, namespace: str = "default", *, now: Instant | None = None) -> int:
        """Cancels everything that waits in it, a few thousand in one transaction."""
        lanes = [row["id"] for row in await self._read("lanes_of_queue", namespace, name)]
        purged = 0
        while True:
            count, more = await self._transact(lambda connection: self._purge(connection, lanes, now))
            purged += count
            if not more:
                return purged

    async def _purge(self, connection: asyncpg.Connection, lanes: list[int], now: Instant | None) -> tuple[int, bool]:
        instant = await self._instant(connection, now)
        found = [row["id"] for row in await self._rows(connection, "runs_in_queue", lanes, PURGED_AT_ONCE)]
        locked = await self._lock_runs(connection, found) if found else {}
        waiting = [row for row in locked.values() if row["state"] in (State.QUEUED, State.HELD, State.RETRYING)]
        await self._cancel_locked(connection, waiting, instant)
        return len(waiting), len(found) > 0 and len(waiting) > 0

    async def discard_dead_letters(self, ids: Sequence[UUID], *, by: str | None = None) -> list[bool]:  # noqa: ARG002 - as above
        """Removes them; False for one that is not there."""
        gone = {row["id"] for row in await self._write("discard", list(ids))}
        answers = []
        for one in ids:
            answers.append(one in gone)
            gone.discard(one)
        return answers


@dataclass(slots=True)
class _Cancelled:
    """What a cancel did, as it becomes known."""

    outcomes: list[CancelOutcome] = field(default_factory=list)
    jobs_changed: bool = False
    changed: set[UUID] = field(default_factory=set)
    ended: set[UUID] = field(default_factory=set)
    asked: set[UUID] = field(default_factory=set)
    ready: set[int] = field(default_factory=set)
    workers: set[UUID | None] = field(default_factory=set)


def _outcome(
    one: UUID,
    is_job: bool,  # noqa: FBT001 - private, and named at its one call
    runs: Sequence[asyncpg.Record],
    records: dict[UUID, UUID],
    owners: dict[UUID, UUID],
    done: _Cancelled,
) -> CancelOutcome:
    mine = [row["id"] for row in runs if (row["job_id"] == one if is_job else row["id"] == one)]
    record = (records[one],) if one in records else ()
    return CancelOutcome(
        one if is_job else owners[one],
        job_changed=is_job and one in done.changed,
        ended=(*record, *(run for run in mine if run in done.ended)),
        asked=tuple(run for run in mine if run in done.asked),
    )


def _is_current(job: Job, edit: JobEdit) -> bool:
    """Whether nobody fired what the edit decided about, or beyond what it says comes next."""
    if edit.firing is not None and (job.state.ended or not guards_hold(job, edit.firing)):
        return False
    if job.kind is not Kind.RECURRING or edit.next_at is None:
        return True
    return edit.next_at > max(job.fired_through, edit.fired_through or 0)


def _edited(job: Job, edit: JobEdit, now: Instant) -> Job:
    state = job.state if edit.state is None else edit.state
    return replace(
        job,
        state=state,
        lane=edit.lane or job.lane,
        priority=job.priority if edit.priority is None else edit.priority,
        payload=job.payload if edit.payload is None else edit.payload,
        document=job.document if edit.document is None else edit.document,
        key=job.key if edit.key is None else edit.key,
        expires_at=job.expires_at if edit.expires_at is None else edit.expires_at,
        next_at=edit.next_at,
        scheduled_at=edit.next_at if edit.next_scheduled_at is None else edit.next_scheduled_at,
        fired_through=max(job.fired_through, edit.fired_through or 0),
        version=job.version + 1,
        updated_at=now,
        paused_at=None if state is not JobState.PAUSED else job.paused_at or now,
    )


def _cancel_record(job: Job, plan: Plan) -> HistoryRow:
    nominal = job.created_at if job.next_at is None else job.next_at
    skip = SkippedOccurrence(nominal, job.scheduled_at or nominal, "")
    return record_of(job, skip, State.CANCELLED, plan.lanes[job.lane])


def _overlap(plan: Plan, new: NewRun, source: Job | Run) -> OverlapVerdict:
    live = plan.live.get(new.job_id, [])
    held = sum(run.held_for_overlap for run in live)
    return decide_overlap(policy_of(source.document).overlap, live=len(live), held=held, catch_up=new.catch_up)


def _plan_run(plan: Plan, new: NewRun, source: Job | Run, *, respect_overlap: bool) -> None:
    verdict = _overlap(plan, new, source) if respect_overlap else OverlapVerdict.START
    job = plan.jobs.get(new.job_id)
    is_its_run = job is not None and job.kind is not Kind.RECURRING and new.replaces is None
    document = source.document
    scheduled_at = plan.now if new.scheduled_at is None else new.scheduled_at
    if verdict is OverlapVerdict.REPLACE:
        plan.cancel_live(new.job_id)
    waits = verdict is not OverlapVerdict.START and bool(plan.live.get(new.job_id))
    plan.runs[new.id] = RunRow(
        id=new.id,
        job_id=new.job_id,
        ready_at=plan.now,
        scheduled_at=scheduled_at,
        created_at=source.created_at if is_its_run else plan.now,
        expires_at=expiry_of(document, scheduled_at, plan.now),
        lane=plan.lanes[source.lane],
        kind=source.kind,
        state=State.HELD if waits else State.QUEUED,
        priority=source.priority,
        catch_up=new.catch_up,
        stands_for_job=is_its_run,
        replaces=new.replaces,
        payload=source.payload if new.payload is None else new.payload,
        origin=new.origin,
        document=document,
        key=source.key if is_its_run else None,
        reason=OVERLAP if waits else None,
        created_by=new.created_by,
    )
    plan.note_live(plan.runs[new.id])
    if is_its_run:
        plan.dropped.append(new.job_id)
        del plan.jobs[new.job_id]
