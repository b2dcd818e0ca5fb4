"""How live runs leave the present: to history, with their keys freed and whoever waited for them let on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from mainspring.core.model import Instant
from mainspring.core.states import Event, State, after
from mainspring.ports.store import Topic
from mainspring.stores.sqlite.rows import uuid_of
from mainspring.stores.sqlite.session import Session

OVERLAP = "overlap"


class LiveRun(NamedTuple):
    """As much of a live run as it takes to end it."""

    number: int
    id: bytes
    state: State
    reason: str | None
    worker: bytes | None
    scheduled_at: Instant

    @property
    def waits_for_overlap(self) -> bool:
        return self.state is State.HELD and self.reason == OVERLAP


def live_of_job(session: Session, job_id: UUID) -> list[LiveRun]:
    """All that has not ended, oldest id first."""
    rows = session.run("live_of_job", (job_id.bytes,))
    return sorted((LiveRun(n, i, State(s), r, w, a) for n, i, s, r, w, a in rows), key=lambda run: run.id)


def bury(session: Session, numbers: Sequence[int], now: Instant) -> None:
    """Moves runs whose `state` is an ended one to history, in this order; releases what waited for them."""
    if not numbers:
        return
    listed = json.dumps(list(numbers))
    session.run("free_keys_of_runs", (listed,))
    session.run("add_dead_letters", (listed, now))
    jobs = [uuid_of(job_id) for (job_id,) in session.run("jobs_of_ended", (listed,)).fetchall()]
    session.run("bury", (listed, now))
    session.run("drop_runs", (listed,))
    for job_id in jobs:
        release_next(session, job_id)


def release_next(session: Session, job_id: UUID) -> None:
    """Opens the oldest run held for overlap, once nothing else of the job is live."""
    live = live_of_job(session, job_id)
    if not live or not all(run.waits_for_overlap for run in live):
        return
    oldest = min(live, key=lambda run: (run.scheduled_at, run.id))
    after(oldest.state, Event.OPEN)
    for (lane,) in session.run("open_held", (oldest.number,)).fetchall():
        session.ready(lane)


def cancel_runs(session: Session, runs: Iterable[LiveRun], now: Instant) -> tuple[list[bytes], list[bytes]]:
    """Ends them as cancelled, or asks their workers to; the ids of the first and of the second."""
    ended: list[LiveRun] = []
    asked: list[LiveRun] = []
    for run in runs:
        if run.state in (State.RUNNING, State.PARKED):
            session.run("ask_cancel", (run.number, now))
            asked.append(run)
            if run.worker is not None:
                session.hint(Topic.WORKER, str(uuid_of(run.worker)))
        else:
            session.run("set_state", (run.number, after(run.state, Event.CANCEL)))
            ended.append(run)
    bury(session, [run.number for run in ended], now)
    return [run.id for run in ended], [run.id for run in asked]
