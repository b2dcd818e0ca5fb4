"""The near future in memory: which jobs are due next, soonest first and of one instant the highest priority first."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from uuid import UUID

from mainspring.core.model import Instant, Job, Kind

_Entry = tuple[Instant, int, int, UUID]


class Near:
    """One-time and recurring jobs stand in lines of their own: a batch is of one sort, which stores fire in one go."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, Job] = {}
        self._one_time: list[_Entry] = []
        self._recurring: list[_Entry] = []
        self._numbers = count()
        self._confirmed: set[UUID] | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: UUID) -> bool:
        return job_id in self._jobs

    def begin_whole(self) -> None:
        """From now on what is seen is remembered; `end_whole` leaves out the rest."""
        self._confirmed = set()

    def end_whole(self) -> None:
        confirmed, self._confirmed = self._confirmed, None
        if confirmed is not None:
            self._jobs = {job_id: job for job_id, job in self._jobs.items() if job_id in confirmed}

    def add(self, jobs: Iterable[Job]) -> None:
        """As they were read; a row that is older than what is known here changes nothing."""
        for job in jobs:
            known = self._jobs.get(job.id)
            if known is None or known.version != job.version or known.fired_through <= job.fired_through:
                self._put(job, known)
            elif self._confirmed is not None:
                self._confirmed.add(job.id)

    def take_due(self, now: Instant, limit: int) -> list[Job]:
        """A batch of what is due, from the line whose head has waited longest."""
        one_time, recurring = self._head(self._one_time), self._head(self._recurring)
        line = (
            self._one_time if recurring is None or (one_time is not None and one_time <= recurring) else self._recurring
        )
        due: list[Job] = []
        while len(due) < limit and (head := self._head(line)) is not None and head <= now:
            due.append(self._jobs.pop(heapq.heappop(line)[3]))
        return due

    @property
    def next_at(self) -> Instant | None:
        """The soonest instant."""
        heads = [head for line in (self._one_time, self._recurring) if (head := self._head(line)) is not None]
        return min(heads, default=None)

    def _put(self, job: Job, known: Job | None) -> None:
        if job.scheduled_at is None:
            return
        self._jobs[job.id] = job
        if self._confirmed is not None:
            self._confirmed.add(job.id)
        if known is None or (known.scheduled_at, known.priority) != (job.scheduled_at, job.priority):
            line = self._recurring if job.kind is Kind.RECURRING else self._one_time
            heapq.heappush(line, (job.scheduled_at, -job.priority, next(self._numbers), job.id))

    def _head(self, line: list[_Entry]) -> Instant | None:
        """Entries of jobs that have gone or moved are cleared away when they come to the front."""
        while line:
            at, priority, _, job_id = line[0]
            job = self._jobs.get(job_id)
            if job is not None and (job.scheduled_at, -job.priority) == (at, priority):
                return at
            heapq.heappop(line)
        return None
