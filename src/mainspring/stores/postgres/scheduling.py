"""Due occurrences become runs or records that say why there is none; what waits is let on or ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mainspring.core.ids import occurrence_id
from mainspring.core.model import (
    SHARDS,
    DueOccurrence,
    Firing,
    Instant,
    Job,
    JobState,
    Kind,
    Lane,
    Origin,
    SkippedOccurrence,
)
from mainspring.core.overlap import OverlapVerdict, decide_overlap
from mainspring.core.policy import policy_of
from mainspring.core.states import State
from mainspring.ports.store import Fired
from mainspring.stores.postgres.connection import columns_of
from mainspring.stores.postgres.ending import ASKED_TO_STOP, OVERLAP, Ended, EndingRuns
from mainspring.stores.postgres.rows import job_of
from mainspring.stores.postgres.submitting import RunRow, Submitting

if TYPE_CHECKING:
    import asyncpg

DUE_STATES = (JobState.SCHEDULED, JobState.ACTIVE)
EVERY_SHARD = list(range(SHARDS))
FIRST_ID = UUID(int=0)


class HistoryRow(NamedTuple):
    """A record of what never was a live run."""

    id: UUID
    job_id: UUID
    scheduled_at: Instant
    created_at: Instant
    lane: int
    occurrences: int
    kind: int
    state: int
    priority: int
    payload: bytes
    document: str | None
    key: str | None
    reason: str | None
    created_by: str | None


@dataclass(slots=True)
class LiveRun:
    """What overlap needs to know of a run of a job whose row we hold."""

    id: UUID
    state: int
    reason: str | None
    worker: UUID | None

    @property
    def held_for_overlap(self) -> bool:
        return self.state == State.HELD and self.reason == OVERLAP


@dataclass(slots=True)
class Plan:
    """What a batch of firings comes to: rows to write once every firing has been decided."""

    now: Instant
    jobs: dict[UUID, Job]
    live: dict[UUID, list[LiveRun]]
    lanes: dict[Lane, int]
    runs: dict[UUID, RunRow] = field(default_factory=dict)
    records: list[HistoryRow] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)
    asked: list[LiveRun] = field(default_factory=list)
    moved: dict[UUID, int] = field(default_factory=dict)
    dropped: list[UUID] = field(default_factory=list)
    freed: list[tuple[str, str, UUID]] = field(default_factory=list)

    # --- deciding

    def fire(self, firing: Firing) -> Fired:
        """Nothing of it happens where a guard does not hold."""
        job = self.jobs.get(firing.job_id)
        if job is None or job.state not in DUE_STATES or not guards_hold(job, firing):
            return Fired(firing.job_id, applied=False)
        return self.apply(job, firing)

    def apply(self, job: Job, firing: Firing) -> Fired:
        self.records += [self._record(job, skip) for skip in firing.skips]
        made = [run_id for due in firing.runs if (run_id := self._fire_one(job, due)) is not None]
        if job.kind is Kind.RECURRING:
            self._move_on(job, firing, len(made))
        elif firing.runs or firing.skips:
            self.dropped.append(job.id)
            del self.jobs[job.id]
            if not made and job.key is not None:
                self.freed.append((job.lane.namespace, job.key, job.id))
        return Fired(job.id, applied=True, runs=tuple(made), skipped=len(firing.skips) + len(firing.runs) - len(made))

    def _move_on(self, job: Job, firing: Firing, made: int) -> None:
        nominals = nominals_of(firing)
        self.jobs[job.id] = replace(
            job,
            state=job.state if firing.next_at is not None else JobState.FINISHED,
            next_at=firing.next_at,
            scheduled_at=firing.next_at if firing.next_scheduled_at is None else firing.next_scheduled_at,
            fired_through=max(job.fired_through, firing.fired_through, *nominals),
            runs_made=job.runs_made + made,
        )
        self.moved[job.id] = self.moved.get(job.id, 0) + made
        if firing.next_at is None and job.key is not None:
            self.freed.append((job.lane.namespace, job.key, job.id))

    def _fire_one(self, job: Job, due: DueOccurrence) -> UUID | None:
        live = self.live.setdefault(job.id, [])
        held = sum(run.held_for_overlap for run in live)
        rule = policy_of(job.document).overlap
        verdict = decide_overlap(rule, live=len(live), held=held, catch_up=due.catch_up)
        if verdict is OverlapVerdict.SKIP:
            self.records.append(self._record(job, SkippedOccurrence(due.nominal, due.scheduled_at, OVERLAP)))
            return None
        if verdict is OverlapVerdict.REPLACE:
            self.cancel_live(job.id)
        waits = verdict is not OverlapVerdict.START and bool(self.live[job.id])
        run = run_row(job, due, self.lanes[job.lane], self.now, waits=waits)
        self.runs[run.id] = run
        self.note_live(run)
        return run.id

    def note_live(self, run: RunRow) -> None:
        self.live.setdefault(run.job_id, []).append(LiveRun(run.id, run.state, run.reason, None))

    def cancel_live(self, job_id: UUID) -> None:
        """What waits ends cancelled; what runs is asked to stop and stays live until it has."""
        live = self.live.get(job_id, [])
        stays = [run for run in live if run.state in ASKED_TO_STOP]
        for run in live:
            if run.state in ASKED_TO_STOP:
                self.asked.append(run)
            else:
                self.cancelled.append(run.id)
        self.live[job_id] = stays

    def _record(self, job: Job, skip: SkippedOccurrence) -> HistoryRow:
        return record_of(job, skip, State.SKIPPED, self.lanes[job.lane])


class Scheduling(EndingRuns, Submitting):
    """What schedulers do."""

    async def due_jobs(self, shards: Sequence[int] | None, *, until: Instant, limit: int = 5000) -> list[Job]:
        """Soonest first; None: of every shard."""
        wanted = EVERY_SHARD if shards is None else sorted(set(shards))
        return [job_of(row) for row in await self._read("due_jobs", wanted, until, limit)]

    async def coming_jobs(
        self, shards: Sequence[int] | None, *, after: tuple[Instant, UUID] | None, until: Instant, limit: int = 5000
    ) -> list[Job]:
        """Soonest first, without payloads."""
        wanted = EVERY_SHARD if shards is None else sorted(set(shards))
        since, last = (0, FIRST_ID) if after is None else after
        return [job_of(row) for row in await self._read("coming_jobs", wanted, since, last, until, limit)]

    async def fire(self, firings: Sequence[Firing], *, now: Instant | None = None) -> list[Fired]:
        """Several schedulers may fire the same: whoever locks the job's row first does, the others' guards fail."""
        moved, ready = await self._fire_herd(firings, now)
        rest = [firing for firing in firings if firing.job_id not in moved]
        fired = {job_id: Fired(job_id, True, (run_id,)) for job_id, run_id in moved.items()}
        answers = [fired[firing.job_id] for firing in firings if firing.job_id in fired]
        workers: set[UUID | None] = set()
        if rest:
            answers, more, workers = await self._transact(lambda c: self._fire(c, rest, now))
            answers = _in_order(firings, fired, answers)
            ready |= more
        await self._lanes_ready(ready)
        self._call_workers(workers)
        return answers

    async def _fire_herd(self, firings: Sequence[Firing], now: Instant | None) -> tuple[dict[UUID, UUID], set[int]]:
        """Nothing but delayed jobs is one statement, which is its own transaction."""
        rows = _rows_of_delayed(firings)
        if not rows or len(rows) < len(firings):
            return {}, set()
        return _moved_of(await self._write("fire_delayed", *columns_of(rows, 5), now))

    async def _fire(
        self, connection: asyncpg.Connection, firings: Sequence[Firing], now: Instant | None
    ) -> tuple[list[Fired], set[int], set[UUID | None]]:
        moved, ready = await self._fire_plain(connection, firings, now)
        rest = [firing for firing in firings if firing.job_id not in moved]
        plan = await self._plan(connection, {firing.job_id for firing in rest}, now)
        fired = [Fired(f.job_id, True, (moved[f.job_id],)) if f.job_id in moved else plan.fire(f) for f in firings]
        ready |= await self._carry_out(connection, plan)
        return fired, ready, {run.worker for run in plan.asked}

    async def _fire_plain(
        self, connection: asyncpg.Connection, firings: Sequence[Firing], now: Instant | None
    ) -> tuple[dict[UUID, UUID], set[int]]:
        """What needs no weighing, in one statement each; what these leave alone is decided job by job."""
        moved: dict[UUID, UUID] = {}
        ready: set[int] = set()
        if delayed := _rows_of_delayed(firings):
            moved, ready = _moved_of(await self._rows(connection, "fire_delayed", *columns_of(delayed, 5), now))
        if recurring := _rows_of_recurring([firing for firing in firings if firing.job_id not in moved]):
            await self._rows(connection, "lock_due", [row[0] for row in recurring])
            answer = await self._rows(connection, "fire_recurring", *columns_of(recurring, 9), now)
            more, lanes = _moved_of(answer)
            moved |= more
            ready |= lanes
        return moved, ready

    async def _plan(self, connection: asyncpg.Connection, ids: Collection[UUID], now: Instant | None) -> Plan:
        """Locks the rows first; live runs are read afterwards, when nobody can add or end one unseen."""
        if not ids:
            return Plan(0, {}, {}, {})
        instant = await self._instant(connection, now)
        rows = await self._rows(connection, "lock_jobs", sorted(ids))
        jobs = {job.id: job for job in map(job_of, rows)}
        lanes = {jobs[row["id"]].lane: row["lane"] for row in rows}
        recurring = [job.id for job in jobs.values() if job.kind is Kind.RECURRING]
        return Plan(instant, jobs, await self._live_of(connection, recurring), lanes)

    async def _live_of(self, connection: asyncpg.Connection, jobs: Sequence[UUID]) -> dict[UUID, list[LiveRun]]:
        live: dict[UUID, list[LiveRun]] = {}
        if jobs:
            for row in await self._rows(connection, "live_runs_of_jobs", list(jobs)):
                live.setdefault(row["job_id"], []).append(
                    LiveRun(row["id"], row["state"], row["reason"], row["worker"])
                )
        return live

    async def _carry_out(self, connection: asyncpg.Connection, plan: Plan) -> set[int]:
        """Writes what was decided; answers the lanes in which something became ready."""
        ready = await self._replace_live(connection, plan)
        await self._add_runs(connection, list(plan.runs.values()))
        if plan.records:
            await self._add_history(connection, plan.records, plan.now)
        if plan.moved:
            await self._rows(connection, "move_jobs_on", *columns_of([_moved(plan, one) for one in plan.moved], 6))
        if plan.dropped:
            await self._rows(connection, "drop_jobs", plan.dropped)
        if plan.freed:
            await self._rows(connection, "free_keys", *columns_of(plan.freed, 3))
        return ready | {run.lane for run in plan.runs.values() if run.state == State.QUEUED}

    async def _replace_live(self, connection: asyncpg.Connection, plan: Plan) -> set[int]:
        """A run planned in this batch may be replaced by a later one of the same batch: it is written as cancelled."""
        if plan.asked:
            await self._rows(connection, "ask_cancel", [run.id for run in plan.asked], plan.now)
        planned = [run_id for run_id in plan.cancelled if run_id in plan.runs]
        if planned:
            await self._add_runs(connection, [plan.runs.pop(run_id) for run_id in planned])
        if not plan.cancelled:
            return set()
        locked = await self._lock_runs(connection, plan.cancelled)
        _, asked, ready = await self._cancel_locked(connection, list(locked.values()), plan.now)
        plan.asked += [LiveRun(run_id, State.RUNNING, None, locked[run_id]["worker"]) for run_id in asked]
        return ready

    async def _add_history(self, connection: asyncpg.Connection, records: Sequence[HistoryRow], now: Instant) -> None:
        columns = columns_of(records, len(HistoryRow._fields))
        await self._rows(connection, "add_history", *columns[:12], now, *columns[12:])

    # --- what waits

    async def promote(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        """Retrying runs whose time has come become queued, their ready_at kept."""
        rows = await self._write("promote", now, limit)
        await self._lanes_ready(row["lane"] for row in rows)
        return len(rows)

    async def expire(self, *, limit: int = 5000, now: Instant | None = None) -> int:
        """Held and queued runs past `expires_at` end as skipped(expired)."""

        async def body(connection: asyncpg.Connection) -> tuple[int, set[int]]:
            instant = await self._instant(connection, now)
            found = [row["id"] for row in await self._rows(connection, "expired", instant, limit)]
            locked = await self._lock_runs(connection, found) if found else {}
            waiting = [
                Ended(row["id"], State.SKIPPED, reason="expired")
                for row in locked.values()
                if row["state"] in (State.QUEUED, State.HELD) and row["attempt"] == 0
            ]
            return len(waiting), await self._end_runs(connection, waiting, instant)

        count, ready = await self._transact(body)
        await self._lanes_ready(ready)
        return count

    async def next_wake(self) -> Instant | None:
        """When the next retry is due or the next run expires."""
        rows = await self._read("next_wake")
        return None if rows[0][0] is None else int(rows[0][0])


def _rows_of_delayed(firings: Sequence[Firing]) -> list[tuple[object, ...]]:
    """Those that may be of delayed jobs: one run, nothing to follow. In the order in which rows are locked."""
    simple = {f.job_id: f for f in firings if len(f.runs) == 1 and not f.skips and f.next_at is None}
    return [
        (job_id, firing.version, occurrence_id(job_id, due.nominal), due.scheduled_at, due.catch_up)
        for job_id, firing, due in ((job_id, simple[job_id], simple[job_id].runs[0]) for job_id in sorted(simple))
    ]


def _rows_of_recurring(firings: Sequence[Firing]) -> list[tuple[object, ...]]:
    """One run and nothing else. Of a job that is fired twice in one batch the second depends on the first."""
    often = Counter(firing.job_id for firing in firings)
    simple = {f.job_id: f for f in firings if len(f.runs) == 1 and not f.skips and often[f.job_id] == 1}
    return [_row_of_recurring(simple[job_id]) for job_id in sorted(simple)]


def _row_of_recurring(firing: Firing) -> tuple[object, ...]:
    due = firing.runs[0]
    return (
        firing.job_id,
        firing.version,
        occurrence_id(firing.job_id, due.nominal),
        due.nominal,
        due.scheduled_at,
        due.catch_up,
        max(due.nominal, firing.fired_through),
        firing.next_at,
        firing.next_at if firing.next_scheduled_at is None else firing.next_scheduled_at,
    )


def _moved_of(rows: Sequence[asyncpg.Record]) -> tuple[dict[UUID, UUID], set[int]]:
    return {row["job_id"]: row["id"] for row in rows}, {row["lane"] for row in rows}


def _in_order(firings: Sequence[Firing], done: Mapping[UUID, Fired], later: Iterable[Fired]) -> list[Fired]:
    following = iter(later)
    return [done[firing.job_id] if firing.job_id in done else next(following) for firing in firings]


def guards_hold(job: Job, firing: Firing) -> bool:
    """The row of a one-time job is its own guard: it leaves when it fires."""
    if job.version != firing.version:
        return False
    if job.kind is not Kind.RECURRING:
        return True
    return all(nominal > job.fired_through for nominal in nominals_of(firing))


def nominals_of(firing: Firing) -> list[Instant]:
    return [due.nominal for due in firing.runs] + [skip.nominal for skip in firing.skips]


def expiry_of(document: str | None, scheduled_at: Instant, accepted_at: Instant) -> Instant | None:
    """`expires_in` counts from scheduled_at, or from acceptance where that was later."""
    span = policy_of(document).expires_in
    return None if span is None else max(scheduled_at, accepted_at) + span


def one_time_key(job: Job) -> str | None:
    """A recurring job keeps its key itself."""
    return None if job.kind is Kind.RECURRING else job.key


def run_row(job: Job, due: DueOccurrence, lane: int, now: Instant, *, waits: bool) -> RunRow:
    return RunRow(
        id=occurrence_id(job.id, due.nominal),
        job_id=job.id,
        ready_at=max(now, due.scheduled_at),
        scheduled_at=due.scheduled_at,
        created_at=job.created_at,
        expires_at=job.expires_at or expiry_of(job.document, due.scheduled_at, job.created_at),
        lane=lane,
        kind=job.kind,
        state=State.HELD if waits else State.QUEUED,
        priority=job.priority,
        catch_up=due.catch_up,
        stands_for_job=job.kind is not Kind.RECURRING,
        replaces=None,
        payload=job.payload,
        origin=Origin.SCHEDULE,
        document=job.document,
        key=one_time_key(job),
        reason=OVERLAP if waits else None,
        created_by=job.created_by,
    )


def record_of(job: Job, skip: SkippedOccurrence, state: State, lane: int) -> HistoryRow:
    """The record of an occurrence, or of several, that never became runs."""
    return HistoryRow(
        id=occurrence_id(job.id, skip.nominal),
        job_id=job.id,
        scheduled_at=skip.scheduled_at,
        created_at=job.created_at,
        lane=lane,
        occurrences=skip.stands_for,
        kind=job.kind,
        state=state,
        priority=job.priority,
        payload=job.payload,
        document=job.document,
        key=one_time_key(job),
        reason=skip.reason or None,
        created_by=job.created_by,
    )


def _moved(plan: Plan, job_id: UUID) -> tuple[object, ...]:
    job = plan.jobs[job_id]
    return job_id, job.state, job.next_at, job.scheduled_at, job.fired_through, plan.moved[job_id]
