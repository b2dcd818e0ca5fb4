"""Rows as the model's nouns. The views of the schema give their columns in the order of the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.core.model import Job, JobState, Kind, Lane, QueueInfo, Run, WorkerInfo
from mainspring.core.states import State

if TYPE_CHECKING:
    import asyncpg

# Looking up is a tenth of what asking the enumeration takes; schedulers read thousands of jobs a second.
_KINDS = {int(kind): kind for kind in Kind}
_JOB_STATES = {int(state): state for state in JobState}


def run_of(row: asyncpg.Record) -> Run:
    """A row of live_runs, past_runs or dead_runs."""
    return Run(row[0], row[1], Lane(*row[2:7]), Kind(row[7]), State(row[8]), *row[9:37])


def job_of(row: asyncpg.Record) -> Job:
    """A row of future_jobs."""
    return Job(row[0], Lane(*row[1:6]), _KINDS[row[6]], _JOB_STATES[row[7]], *row[8:22])


def worker_of(row: asyncpg.Record) -> WorkerInfo:
    return WorkerInfo(
        id=row["id"],
        host=row["host"],
        pid=row["pid"],
        queues=tuple(row["queues"]),
        slots=row["slots"],
        version=row["version"],
        lease=row["lease"],
        namespace=row["namespace"],
        keeper=row["keeper"],
        started_at=row["started_at"],
        beat_at=row["beat_at"],
        beat=row["beat"],
        running=row["running"],
        draining=row["draining"],
        lost_at=row["lost_at"],
        evidence=row["evidence"],
    )


def queue_of(row: asyncpg.Record) -> QueueInfo:
    return QueueInfo(row["name"], row["paused"], row["queued"], row["running"], row["held"], row["limits"])
