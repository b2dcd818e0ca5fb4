"""Why something runs or does not: the chain of gates between an instant and a start, each open or closed.

The first gate that is closed is the answer; what opens it is said beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mainspring.core.model import Instant, Job, JobState, Kind, Run
from mainspring.core.policy import Overlap, policy_of
from mainspring.core.sources import Occurrence
from mainspring.core.states import State
from mainspring.core.times import utc_text

SKIPPED_BECAUSE = {
    "overlap": "an earlier run of the job had not ended, and the overlap rule drops what comes meanwhile",
    "paused": "the job was paused when it fell due",
    "misfire": "nobody fired it in time, and the misfire policy drops what is that late",
    "calendar": "its calendar closes that day",
    "dst_gap": "its local time does not exist on that day: the clocks were put forward over it",
    "expired": "it had not started by the time at which it expires",
    "parent": "a job that it waits for ended in another way",
    "limit": "a limit was reached",
    "requested": "somebody asked to leave it out",
    "unique": "another job with its unique key was there",
}


class Gate(NamedTuple):
    gate: str
    open: bool
    detail: str
    opens_when: str | None = None


class Explanation(NamedTuple):
    status: str
    why: str
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies between ready and running, as it is now."""

    now: Instant
    registered: bool
    queue_paused: bool
    workers: int
    """Those that live, serve the queue and are not being drained."""
    free_slots: int


def explain_run(run: Run, beside: Sequence[Run], around: Surroundings) -> Explanation:
    """`beside`: the other live runs of its job."""
    if run.state is State.SKIPPED:
        because = SKIPPED_BECAUSE.get(run.reason or "", "it was not to run")
        count = f" ({run.count} occurrences)" if run.count > 1 else ""
        return _closed(run.state.word, Gate(run.reason or "skipped", False, because + count))
    if run.state.ended:
        ended = "" if run.finished_at is None else f" at {utc_text(run.finished_at)}"
        return _closed(run.state.word, Gate("ended", False, f"it ended {run.state.word}{ended}", _after_end(run)))
    gates = (Gate("ended", True, "it has not ended"), *_cancel(run), *_own(run, beside, around), *_path(run, around))
    return Explanation(run.state.word, _first_closed(gates) or _running_or_ready(run), gates)


def explain_job(
    job: Job,
    status: str,
    coming: Occurrence | None,
    live: Sequence[Run],
    around: Surroundings,
) -> Explanation:
    """A job that is still a definition; `coming` is its next occurrence, which perhaps will not fire."""
    gates = [_state(job), *_schedule(job, coming, around.now)]
    if job.kind is Kind.RECURRING and not job.state.ended:
        gates.append(_overlap_of(job, live))
    gates += _path(job, around)
    return Explanation(status, _first_closed(gates) or "it is due and is being fired", tuple(gates))


def explain_instant(
    job: Job,
    at: Instant,
    around: Surroundings,
    *,
    occurrence: Occurrence | None,
    record: Run | None,
    neighbours: Sequence[Occurrence] = (),
) -> Explanation:
    """`occurrence`: what the definition of that time has at the instant; `record`: its run, or the record of its skip."""
    if record is not None:
        told = explain_run(record, (), around)
        lead = (Gate("schedule", True, f"an occurrence of the job is recorded for {utc_text(at)}"),)
        return Explanation(told.status, told.why, (*lead, *told.gates))
    if occurrence is None:
        near = " and ".join(utc_text(each.scheduled_at) for each in neighbours)
        detail = f"the schedule has no occurrence at {utc_text(at)}" + (f"; the nearest are {near}" if near else "")
        return _closed("none", Gate("schedule", False, detail, "the schedule is changed"))
    gates = [Gate("schedule", True, f"the schedule has an occurrence at {utc_text(occurrence.scheduled_at)}")]
    gates += _marks(occurrence)
    if at < job.created_at:
        gates.append(Gate("created", False, f"the job was made at {utc_text(job.created_at)}", "a backfill fills it"))
        return Explanation("none", _first_closed(gates) or "", tuple(gates))
    if occurrence.nominal <= job.fired_through:
        detail = "no record of it is kept: an edit came between, max_runs was reached, or its history was dropped"
        gates.append(Gate("record", False, detail, "a backfill fills it"))
        return Explanation("none", _first_closed(gates) or "", tuple(gates))
    gates += [_state(job), _due(occurrence.scheduled_at, around.now), *_path(job, around)]
    return Explanation("scheduled", _first_closed(gates) or "it is due and is being fired", tuple(gates))


def _cancel(run: Run) -> list[Gate]:
    if run.cancel_requested_at is None:
        return []
    asked = utc_text(run.cancel_requested_at)
    return [Gate("cancel", False, f"a cancel was asked for at {asked}; its handler has not stopped yet")]


def _own(run: Run, beside: Sequence[Run], around: Surroundings) -> list[Gate]:
    """Gates of the run itself, in the order in which they are passed."""
    if run.state is State.UNKNOWN:
        detail = "it was started, and nobody knows whether it took effect"
        return [Gate("outcome", False, detail, "somebody resolves or cancels it")]
    gates = []
    if run.state is State.HELD and run.reason == "overlap":
        names = ", ".join(str(other.id) for other in beside[:3]) or "another run"
        gates.append(Gate("overlap", False, f"an earlier run of its job has not ended: {names}", "that run ends"))
    elif policy_of(run.document).overlap is not Overlap.ALLOW and run.kind is Kind.RECURRING:
        gates.append(Gate("overlap", True, "no other run of its job stands before it"))
    if run.state is State.RETRYING:
        until = utc_text(run.ready_at)
        gates.append(Gate("retry", False, f"attempt {run.attempt} failed; the wait before the next is not over", until))
    elif run.ready_at > around.now:
        gates.append(Gate("time", False, "its instant has not come", utc_text(run.ready_at)))
    else:
        gates.append(Gate("time", True, f"it is ready since {utc_text(run.ready_at)}"))
    return gates


def _path(of: Run | Job, around: Surroundings) -> list[Gate]:
    """From ready to running; a run that has started is through."""
    if isinstance(of, Run) and of.state in (State.RUNNING, State.PARKED, State.UNKNOWN):
        return []
    lane = of.lane
    return [
        Gate("task", True, f"task {lane.task!r} is registered")
        if around.registered
        else Gate("task", False, f"no worker has registered task {lane.task!r}", "a worker that has it starts"),
        Gate("queue", False, f"queue {lane.queue!r} is paused", "the queue is resumed")
        if around.queue_paused
        else Gate("queue", True, f"queue {lane.queue!r} is open"),
        Gate("worker", True, f"{around.workers} workers serve queue {lane.queue!r}")
        if around.workers
        else Gate("worker", False, f"no living worker serves queue {lane.queue!r}", "a worker starts"),
        Gate("slots", True, f"{around.free_slots} slots are free")
        if around.free_slots > 0 or not around.workers
        else Gate("slots", False, "all slots of the workers are taken", "a run ends, or a worker starts"),
    ]


def _state(job: Job) -> Gate:
    if job.state is JobState.PAUSED:
        since = "" if job.paused_at is None else f" since {utc_text(job.paused_at)}"
        return Gate("pause", False, f"the job is paused{since}", "it is resumed")
    if job.state.ended:
        return Gate("state", False, f"the job is {job.state.word}", None)
    if job.state is JobState.WAITING:
        return Gate("parents", False, "the job waits for others", "they end")
    return Gate("state", True, f"the job is {job.state.word}")


def _schedule(job: Job, coming: Occurrence | None, now: Instant) -> list[Gate]:
    if job.state.ended:
        return []
    if coming is None:
        return [Gate("schedule", False, "no occurrence is left", "the schedule is changed")]
    return [Gate("schedule", True, "an occurrence is to come"), *_marks(coming), _due(coming.scheduled_at, now)]


def _marks(occurrence: Occurrence) -> list[Gate]:
    closed = not occurrence.fires
    gates = []
    if "calendar" in occurrence.marks:
        detail = SKIPPED_BECAUSE["calendar"] if closed else "its calendar moved it"
        gates.append(Gate("calendar", not closed, detail, "the calendar is changed" if closed else None))
    if "dst_gap" in occurrence.marks:
        missing = closed and "calendar" not in occurrence.marks
        detail = SKIPPED_BECAUSE["dst_gap"] if missing else "its local time does not exist that day; dst.gap moved it"
        gates.append(Gate("dst", not missing, detail, "dst.gap is changed" if missing else None))
    if "dst_fold" in occurrence.marks:
        gates.append(Gate("dst", True, "its local time comes twice that day; dst.fold chose"))
    return gates


def _due(due: Instant, now: Instant) -> Gate:
    if due > now:
        return Gate("time", False, "its instant has not come", utc_text(due))
    return Gate("time", True, f"it is due since {utc_text(due)}")


def _overlap_of(job: Job, live: Sequence[Run]) -> Gate:
    rule = policy_of(job.document).overlap
    if not live or rule is Overlap.ALLOW:
        return Gate("overlap", True, "no run stands in its way" if not live else "its runs may overlap")
    names = ", ".join(str(run.id) for run in live[:3])
    if rule is Overlap.SKIP:
        return Gate("overlap", False, f"what falls due is skipped while {names} has not ended", "that run ends")
    if rule is Overlap.CANCEL:
        return Gate("overlap", True, f"the next run cancels {names}")
    return Gate("overlap", False, f"the next run waits until {names} has ended", "that run ends")


def _running_or_ready(run: Run) -> str:
    if run.state is State.RUNNING:
        since = "" if run.started_at is None else f" since {utc_text(run.started_at)}"
        return f"it is running on worker {run.worker}{since}"
    if run.state is State.PARKED:
        return "it has started and waits for a callback, a signal or a time"
    return "nothing is in its way: a worker takes it as soon as it looks"


def _after_end(run: Run) -> str | None:
    return "it is replayed or retried" if run.state is State.FAILED else None


def _first_closed(gates: Sequence[Gate]) -> str | None:
    closed = next((gate for gate in gates if not gate.open), None)
    if closed is None:
        return None
    return closed.detail + (f" (until: {closed.opens_when})" if closed.opens_when else "")


def _closed(status: str, gate: Gate) -> Explanation:
    return Explanation(status, gate.detail, (gate,))
