"""Jobs enter: as runs if they are for now, as rows of `jobs` otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mainspring.core.errors import Conflict, InvalidInput, KeyTaken
from mainspring.core.ids import instant_of_id
from mainspring.core.model import DAY, Instant, JobState, Kind, Lane, NewJob, Origin
from mainspring.core.states import State
from mainspring.ports.store import Submitted, jobs_hint
from mainspring.stores.postgres.base import LOOKED_BACK, Base
from mainspring.stores.postgres.connection import columns_of, sqlstate

if TYPE_CHECKING:
    import asyncpg

COPY_FROM = 200  # rows from which the copy protocol pays for its extra round trips
UNIQUE_VIOLATION = "23505"


class RunRow(NamedTuple):
    """A new row of `runs`, in the order of its insert."""

    id: UUID
    job_id: UUID
    ready_at: Instant
    scheduled_at: Instant
    created_at: Instant
    expires_at: Instant | None
    lane: int
    kind: int
    state: int
    priority: int
    catch_up: bool
    stands_for_job: bool
    replaces: UUID | None
    payload: bytes
    origin: str
    document: str | None
    key: str | None
    reason: str | None
    created_by: str | None


class Submitting(Base):
    """The verbs by which jobs enter."""

    async def submit(
        self, jobs: Sequence[NewJob], *, repeat: bool = False, now: Instant | None = None
    ) -> list[Submitted]:
        if not jobs:
            return []
        about = await self._about_now() if now is None else now
        _refuse_far_ids(jobs, about)
        lanes = {job.lane for job in jobs}
        numbers = await self._intern(lanes)
        known = await self._are_known(lanes)
        existing: set[UUID] = set()
        if repeat or any(job.key is not None or job.kind is not Kind.IMMEDIATE for job in jobs):
            existing = await self._submit_all(jobs, numbers, repeat=repeat, now=now)
        else:
            await self._submit_immediate(jobs, numbers, now)
        self._tell_of(jobs, existing)
        return [Submitted(job.id, (job.lane.namespace, job.lane.task) in known, job.id in existing) for job in jobs]

    async def find_key(self, key: str, namespace: str = "default") -> UUID | None:
        """The live job that holds the key."""
        rows = await self._read("holders", namespace, [key])
        return rows[0]["job_id"] if rows else None

    def _tell_of(self, jobs: Sequence[NewJob], existing: set[UUID]) -> None:
        fresh = [job for job in jobs if job.id not in existing] if existing else jobs
        self._ready({job.lane.queue for job in fresh if job.kind is Kind.IMMEDIATE})
        if later := [job for job in fresh if job.kind is not Kind.IMMEDIATE]:
            self._hints.publish((jobs_hint(later),))

    # --- the common case

    async def _submit_immediate(self, jobs: Sequence[NewJob], lanes: dict[Lane, int], now: Instant | None) -> None:
        try:
            if len(jobs) < COPY_FROM:
                await self._write("submit_now", *_columns_of_immediate(jobs, lanes), now)
            else:
                await self._transact(lambda connection: self._copy_immediate(connection, jobs, lanes, now))
        except Exception as error:
            if sqlstate(error) == UNIQUE_VIOLATION:
                raise Conflict(_EXISTS) from error
            raise

    async def _copy_immediate(
        self, connection: asyncpg.Connection, jobs: Sequence[NewJob], lanes: dict[Lane, int], now: Instant | None
    ) -> None:
        instant = await self._instant(connection, now)
        # In the order in which they will be claimed: claims then read and write neighbouring places.
        await self._copy_runs(connection, [_run_row(job, lanes[job.lane], instant) for job in sorted(jobs, key=_by_id)])

    async def _copy_runs(self, connection: asyncpg.Connection, rows: Sequence[RunRow]) -> None:
        await connection.copy_records_to_table(
            "runs", schema_name=self._address.schema, columns=RunRow._fields, records=rows
        )

    async def _add_runs(self, connection: asyncpg.Connection, rows: Sequence[RunRow]) -> set[UUID]:
        """Within a transaction; answers the ids that were not there before."""
        if not rows:
            return set()
        added = await self._rows(connection, "add_runs", *columns_of(rows, len(RunRow._fields)))
        return {row["id"] for row in added}

    # --- keys, repeats, delayed and recurring jobs

    async def _submit_all(
        self, jobs: Sequence[NewJob], lanes: dict[Lane, int], *, repeat: bool, now: Instant | None
    ) -> set[UUID]:
        async def body(connection: asyncpg.Connection) -> set[UUID]:
            instant = await self._instant(connection, now)
            added = await self._insert(connection, jobs, lanes, instant)
            missing = {job.id for job in jobs} - added
            if not repeat and (missing or len(added) < len(jobs)):
                raise Conflict(_EXISTS)
            existing = missing | (await self._withdraw(connection, jobs, added) if repeat else set())
            fresh = [job for job in jobs if job.id not in existing]
            await self._take_keys(connection, [(job.lane.namespace, job.key, job.id) for job in fresh])
            recurring = [job.id for job in fresh if job.kind is Kind.RECURRING]
            if recurring:
                await self._rows(connection, "add_versions", recurring, instant)
            return existing

        return await self._transact(body)

    async def _insert(
        self, connection: asyncpg.Connection, jobs: Sequence[NewJob], lanes: dict[Lane, int], now: Instant
    ) -> set[UUID]:
        runs = [_run_row(job, lanes[job.lane], now) for job in jobs if job.kind is Kind.IMMEDIATE]
        rows = [_job_row(job, lanes[job.lane]) for job in jobs if job.kind is not Kind.IMMEDIATE]
        added = await self._add_runs(connection, runs)
        if rows:
            columns = columns_of(rows, 12)
            inserted = await self._rows(connection, "add_jobs", *columns[:11], now, columns[11])
            added |= {row["id"] for row in inserted}
        return added

    async def _withdraw(self, connection: asyncpg.Connection, jobs: Sequence[NewJob], added: set[UUID]) -> set[UUID]:
        """A run that was live at the insert would have been in its way; one that has ended since is seen only now."""
        since = min(instant_of_id(job.id) for job in jobs) - LOOKED_BACK
        rows = await self._rows(connection, "sent_before", sorted(added), since, sorted(added))
        again = [row["id"] for row in rows]
        if again:
            await self._rows(connection, "withdraw_runs", again)
            await self._rows(connection, "withdraw_jobs", again)
        return set(again)

    async def _take_keys(self, connection: asyncpg.Connection, wanted: Sequence[tuple[str, str | None, UUID]]) -> None:
        """Two submits with one key: the second waits for the first's commit and is then refused."""
        keyed = [(namespace, key, job_id) for namespace, key, job_id in wanted if key is not None]
        if not keyed:
            return
        for namespace, key, job_id in _doubled(keyed):
            raise KeyTaken(key, str(next(one[2] for one in keyed if one[:2] == (namespace, key) and one[2] != job_id)))
        rows = await self._rows(connection, "take_keys", *columns_of(keyed, 3))
        taken = {row["job_id"] for row in rows}
        for namespace, key, job_id in keyed:
            if job_id not in taken:
                holders = await self._rows(connection, "holders", namespace, [key])
                raise KeyTaken(key, str(holders[0]["job_id"]) if holders else "another job")


_EXISTS = "a job with this id exists already; a send that may be a repeat must say so"


def _by_id(job: NewJob) -> int:
    return job.id.int


def _refuse_far_ids(jobs: Sequence[NewJob], now: Instant) -> None:
    for job in jobs:
        if abs(instant_of_id(job.id) - now) > DAY:
            raise InvalidInput.at("/id", f"{job.id} was made for a time more than a day away from the store's")


def _columns_of_immediate(jobs: Sequence[NewJob], lanes: dict[Lane, int]) -> list[list[object]]:
    return [
        [job.id for job in jobs],
        [job.scheduled_at for job in jobs],
        [job.expires_at for job in jobs],
        [lanes[job.lane] for job in jobs],
        [job.priority for job in jobs],
        [job.payload for job in jobs],
        [job.document for job in jobs],
        [job.reason for job in jobs],
        [job.created_by for job in jobs],
    ]


def _run_row(job: NewJob, lane: int, now: Instant) -> RunRow:
    scheduled_at = now if job.scheduled_at is None else job.scheduled_at
    return RunRow(
        job.id, job.id, now, scheduled_at, now, job.expires_at, lane, 0, State.QUEUED.value, job.priority, False, True,
        None, job.payload, _SUBMIT, job.document, job.key, job.reason, job.created_by,
    )  # fmt: skip


_SUBMIT = str(Origin.SUBMIT)


def _job_row(job: NewJob, lane: int) -> tuple[object, ...]:
    state = JobState.ACTIVE if job.kind is Kind.RECURRING else JobState.SCHEDULED
    return (
        job.id,
        job.next_at,
        job.next_at if job.scheduled_at is None else job.scheduled_at,
        job.expires_at,
        lane,
        int(job.kind),
        int(state),
        job.priority,
        job.payload,
        job.document,
        job.key,
        job.created_by,
    )


def _doubled(keyed: Sequence[tuple[str, str, UUID]]) -> list[tuple[str, str, UUID]]:
    """Those whose key an earlier one of the batch has."""
    seen: set[tuple[str, str]] = set()
    doubled = []
    for namespace, key, job_id in keyed:
        if (namespace, key) in seen:
            doubled.append((namespace, key, job_id))
        seen.add((namespace, key))
    return doubled
