"""The judges. Each takes the evidence and the final snapshot and answers violations; none shares code with the product
beyond its data types. Numbers as in the project's list of invariants."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from mainspring.core.ids import instant_of_id
from mainspring.core.model import Instant, Job, Run
from mainspring.core.states import State
from tests.simulation.evidence import Entry, Evidence, Mark
from tests.simulation.time_checkers import e2_overlap, e4_misfire

SECOND = 1_000_000
SLACK = SECOND


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the store held at the end."""

    runs: dict[UUID, Run]
    history: dict[UUID, Run]
    dead_letters: dict[UUID, Run]
    jobs: dict[UUID, Job]

    def run(self, identity: UUID) -> Run | None:
        return self.runs.get(identity) or self.history.get(identity)

    def of_job(self, job: UUID) -> list[Run]:
        return [run for run in (*self.runs.values(), *self.history.values()) if run.job_id == job]


@dataclass(frozen=True, slots=True)
class Lease:
    """One claim of a run and what ended it."""

    run: UUID
    fence: int
    attempt: int
    worker: UUID
    claimed_at: Instant
    ended_at: Instant | None = None
    how: str = "open"
    state: int | None = None
    ending: Any = None


@dataclass(slots=True)
class Case:
    """Evidence with the joins that several judges need."""

    evidence: Evidence
    snapshot: Snapshot
    lease: float
    own_signs: bool = False
    leases: dict[UUID, list[Lease]] = field(default_factory=lambda: defaultdict(list))
    stale: int = 0
    rescued: int = 0
    retried: int = 0

    def __post_init__(self) -> None:
        for entry in self.evidence.journal:
            handler = _READERS.get(entry.verb)
            if handler is not None:
                handler(self, entry)

    def claimed(self, entry: Entry) -> None:
        worker = entry.asked[0][0]
        for run in entry.answer:
            self.leases[run.id].append(Lease(run.id, run.fence, run.attempt, worker, entry.at))

    def finished(self, entry: Entry) -> None:
        for ending, verdict in zip(entry.asked[0][1], entry.answer, strict=True):
            if verdict == 0:
                self.retried += ending.state in (State.RETRYING, State.QUEUED)
                self._close(ending.id, ending.fence, entry.at, ending.outcome.value, ending.state, ending)
            else:
                self.stale += verdict == 1

    def saved(self, entry: Entry) -> None:
        for one in entry.answer:
            self.rescued += 1
            leases = self.leases[one.run_id]
            if leases:
                self._close(one.run_id, leases[-1].fence, entry.at, "rescued", one.state, one)

    def _close(self, run: UUID, fence: int, at: Instant, how: str, state: int, ending: Any) -> None:
        leases = self.leases[run]
        for index, lease in enumerate(leases):
            if lease.fence == fence and lease.ended_at is None:
                leases[index] = Lease(run, fence, lease.attempt, lease.worker, lease.claimed_at, at, how, state, ending)


_READERS: dict[str, Callable[[Case, Entry], None]] = {
    "claim": Case.claimed,
    "finish": Case.finished,
    "rescue": Case.saved,
}

Judge = Callable[[Case], Iterator[str]]


def a1_no_loss(case: Case) -> Iterator[str]:
    """Every accepted submit is still there: as a job, a live run, or exactly one end."""
    for submission in case.evidence.submissions.values():
        if submission.accepted is not True:
            continue
        job, runs = case.snapshot.jobs.get(submission.id), case.snapshot.of_job(submission.id)
        if job is None and not runs:
            yield f"accepted {submission.plan} {submission.id} is nowhere"
    for run in case.snapshot.history.values():
        started = any(mark.run == run.id and mark.kind == "start" for mark in case.evidence.ledger)
        resolved = run.reason == "resolved" or any(e.verb == "resolve" for e in case.evidence.journal)
        if run.state is State.COMPLETED and not started and not resolved:
            yield f"{run.id} is completed and no handler ever started"


def a2_no_phantom(case: Case) -> Iterator[str]:
    for mark in case.evidence.ledger:
        if mark.job not in case.evidence.submissions:
            yield f"a handler started for a job nobody sent: {mark.job}"
    for submission in case.evidence.submissions.values():
        if submission.accepted is False and case.snapshot.of_job(submission.id):
            yield f"refused {submission.id} has runs"


def a3_conservation(case: Case) -> Iterator[str]:
    """Each expected occurrence of a recurring job is a run, a skip (perhaps counted), or still to come."""
    for submission in case.evidence.submissions.values():
        job = case.snapshot.jobs.get(submission.id)
        if submission.every is None or job is None:
            continue
        records = [run for run in case.snapshot.of_job(job.id) if run.origin == "schedule"]
        nominal = [run.scheduled_at for run in records]
        if len(set(nominal)) != len(nominal):
            yield f"job {job.id} has two records for one instant"
        expected = _instants(case, job, submission.every)
        counted = sum(run.count for run in records)
        if counted != expected:
            yield f"job {job.id}: {expected} instants were due, {counted} are recorded"


def _instants(case: Case, job: Job, every: int) -> int:
    """How many instants the intervals in force from edit to edit have had."""
    anchor, low, total = instant_of_id(job.id), job.created_at, 0
    for entry in case.evidence.journal:
        if entry.verb == "change" and entry.answer is not None and entry.asked[0][0].job_id == job.id:
            edited = entry.answer
            if entry.asked[0][0].definition_changed:
                total += (edited.fired_through - anchor) // (every * SECOND) - (low - anchor) // (every * SECOND)
                low, every = edited.fired_through, json.loads(edited.document)["every"]
    return total + (job.fired_through - anchor) // (every * SECOND) - (low - anchor) // (every * SECOND)


def a5_not_early(case: Case) -> Iterator[str]:
    due = {run.id: run.scheduled_at for run in (*case.snapshot.runs.values(), *case.snapshot.history.values())}
    for mark in case.evidence.ledger:
        if mark.kind == "start" and mark.run in due and mark.at < due[mark.run]:
            yield f"run {mark.run} started {due[mark.run] - mark.at} microseconds early"


def b1_one_end(case: Case) -> Iterator[str]:
    for run, leases in case.leases.items():
        ends = [lease for lease in leases if lease.state is not None and State(lease.state).ended]
        if len(ends) > 1:
            yield f"run {run} ended {len(ends)} times"
    for run in case.snapshot.runs:
        if run in case.snapshot.history:
            yield f"run {run} is live and ended at once"


def b5_justified_repeats(case: Case) -> Iterator[str]:
    """Each start after the first follows a recorded end of the attempt before it, and a loss has its real cause."""
    for run, leases in case.leases.items():
        for earlier, later in itertools.pairwise(leases):
            if earlier.ended_at is None or earlier.ended_at > later.claimed_at:
                yield f"run {run} was claimed again with fence {later.fence} while {earlier.fence} was open"
    declared: set[UUID] = set()
    for entry in case.evidence.journal:
        if entry.verb == "declare_lost" and entry.answer is True:
            declared.add(entry.asked[0][0])
            problem = _unjust(case, entry)
            if problem:
                yield problem
        elif entry.verb == "deregister":
            declared.add(entry.asked[0][0])
        elif entry.verb == "rescue":
            for one in entry.answer:
                if one.worker not in declared:
                    yield f"run {one.run_id} was taken from worker {one.worker}, which nobody had declared lost"


def _unjust(case: Case, entry: Entry) -> str | None:
    worker, cause = entry.asked[0][0], entry.asked[0][1].value
    if worker in case.evidence.deaths and case.evidence.deaths[worker] <= entry.at:
        return None
    if cause == "death":
        return f"worker {worker} was declared dead and is alive"
    if cause == "stall":
        process = case.evidence.worker_process.get(worker)
        paused = any(name == process and began <= entry.at for name, began, _ in case.evidence.pauses)
        return None if paused else f"worker {worker} was declared stalled and never was"
    latest = max(
        (acknowledged for sent, acknowledged in case.evidence.acknowledged.get(worker, ()) if acknowledged <= entry.at),
        default=0,
    )
    if cause == "silence" and entry.at - latest < case.lease * SECOND * 0.99:
        return f"worker {worker} was declared silent {(entry.at - latest) / SECOND:.2f} s after an acknowledged beat"
    return None


def b6_disjoint_leases(case: Case) -> Iterator[str]:
    for run, leases in case.leases.items():
        for earlier, later in itertools.pairwise(leases):
            if earlier.ended_at is not None and later.claimed_at < earlier.ended_at:
                yield f"claims of run {run} overlap"


def b7_self_stop(case: Case) -> Iterator[str]:
    """A handler that can run stops before the lease, counted from when the last acknowledged renewal was sent, is over."""
    if case.own_signs:
        return
    ends = {(mark.run, mark.fence): mark.at for mark in case.evidence.ledger if mark.kind == "end"}
    for mark in case.evidence.ledger:
        if mark.kind != "start" or mark.worker in case.evidence.deaths:
            continue
        ended = ends.get((mark.run, mark.fence), case.evidence.finished_at)
        trusted = _trusted_until(case, mark.worker, mark.at)
        for sent, acknowledged in case.evidence.acknowledged.get(mark.worker, ()):
            if mark.at <= acknowledged <= trusted:
                trusted = max(trusted, sent + round(case.lease * SECOND))
        if ended > trusted + SLACK and not _was_paused(case, mark, trusted, ended):
            yield f"handler of {mark.run} (fence {mark.fence}) went on {(ended - trusted) / SECOND:.1f} s after its lease"


def _trusted_until(case: Case, worker: UUID, at: Instant) -> Instant:
    sent = [sent for sent, acknowledged in case.evidence.acknowledged.get(worker, ()) if acknowledged <= at]
    return max(sent, default=at) + round(case.lease * SECOND)


def _was_paused(case: Case, mark: Mark, start: Instant, end: Instant) -> bool:
    return any(
        name == mark.process and began <= end and over >= start - SLACK for name, began, over in case.evidence.pauses
    )


def b8_fence_rises(case: Case) -> Iterator[str]:
    for run, leases in case.leases.items():
        fences = [lease.fence for lease in leases]
        if fences != list(range(1, len(fences) + 1)):
            yield f"run {run} was claimed with fences {fences}"


def b9_stale_refused(case: Case) -> Iterator[str]:
    """No ending is accepted whose fence was not the newest claim then, or that came after the claim had ended."""
    newest: dict[UUID, int] = {}
    closed: set[tuple[UUID, int]] = set()
    for entry in case.evidence.journal:
        if entry.verb == "claim":
            newest.update((run.id, run.fence) for run in entry.answer)
        elif entry.verb == "rescue":
            closed.update((one.run_id, newest.get(one.run_id, 0)) for one in entry.answer)
        elif entry.verb == "finish":
            for ending, verdict in zip(entry.asked[0][1], entry.answer, strict=True):
                if verdict != 0:
                    continue
                if ending.fence != newest.get(ending.id) or (ending.id, ending.fence) in closed:
                    yield f"a stale ending of run {ending.id} with fence {ending.fence} was accepted"
                closed.add((ending.id, ending.fence))


def b10_ends_absorb(case: Case) -> Iterator[str]:
    ended: set[UUID] = set()
    for entry in case.evidence.journal:
        for run in _touched(entry):
            if run in ended:
                yield f"run {run} was changed by {entry.verb} after it had ended"
        ended.update(_ended_by(entry))
    for replayed in case.snapshot.history.values():
        if replayed.origin in ("replay", "retry") and replayed.replaces is None:
            yield f"replayed run {replayed.id} does not say what it replaces"


def _touched(entry: Entry) -> list[UUID]:
    if entry.verb == "claim":
        return [run.id for run in entry.answer]
    if entry.verb == "rescue":
        return [one.run_id for one in entry.answer]
    return _ended_by(entry)


def _ended_by(entry: Entry) -> list[UUID]:
    if entry.verb == "finish":
        pairs = zip(entry.asked[0][1], entry.answer, strict=True)
        return [ending.id for ending, verdict in pairs if verdict == 0 and ending.state.ended]
    if entry.verb == "cancel":
        return [run for outcome in entry.answer for run in outcome.ended]
    return []


def c1_retries(case: Case) -> Iterator[str]:
    """Spent attempts stay within their bound, and a failed one is followed by its backoff."""
    for run, leases in case.leases.items():
        if not leases:
            continue
        submission = _submission_of(case, run)
        if submission is None:
            continue
        spent = sum(1 for lease in leases if _spends(lease))
        if spent > submission.max_attempts:
            yield f"run {run} of {submission.plan} spent {spent} of {submission.max_attempts} attempts"
        for earlier, later in itertools.pairwise(leases):
            if earlier.how in ("failed", "timed_out") and earlier.ended_at is not None:
                gap = later.claimed_at - earlier.ended_at
                if gap < 0.9 * SECOND and not _hurried(case, run):
                    yield f"run {run} was retried {gap / SECOND:.3f} s after a failure"


def _spends(lease: Lease) -> bool:
    return lease.how in ("failed", "timed_out", "rescued") or (lease.how == "lost")


def _hurried(case: Case, run: UUID) -> bool:
    return any(entry.verb == "retry_now" and entry.asked[0][0] == run for entry in case.evidence.journal)


def _submission_of(case: Case, run: UUID) -> Any:
    found = case.snapshot.run(run)
    return case.evidence.submissions.get(found.job_id) if found is not None else None


def c2_dead_letters(case: Case) -> Iterator[str]:
    """Dead letters are exactly the failed runs that nobody replayed or discarded."""
    redeemed = {
        new.replaces
        for entry in case.evidence.journal
        if entry.verb == "add_runs" and entry.asked[1].get("redeem_dead_letters")
        for new in entry.answer
    }
    failed = {run.id for run in case.snapshot.history.values() if run.state is State.FAILED}
    for run_id in failed - redeemed - set(case.snapshot.dead_letters):
        yield f"failed run {run_id} is not among the dead letters"
    for run_id in set(case.snapshot.dead_letters) - failed:
        yield f"dead letter {run_id} did not fail"
    for run_id in set(case.snapshot.dead_letters) & redeemed:
        yield f"replayed run {run_id} is still a dead letter"


def c3_poison(case: Case) -> Iterator[str]:
    """A run that kills its worker stops after three deaths, and nobody else fails because of it."""
    starts: dict[UUID, int] = defaultdict(int)
    for mark in case.evidence.ledger:
        submission = case.evidence.submissions.get(mark.job)
        if mark.kind == "start" and submission is not None and submission.plan == "poison":
            starts[mark.run] += 1
    for run, count in starts.items():
        rescues = [lease for lease in case.leases[run] if lease.how == "rescued"]
        deaths = sum(lease.ending.reason in ("death", "poison") for lease in rescues)
        if deaths > 3:
            yield f"poison run {run} took {deaths} processes with it in {count} starts"
    for ended in case.snapshot.history.values():
        submission = case.evidence.submissions.get(ended.job_id)
        poisoned = ended.state is State.FAILED and ended.reason == "poison"
        if poisoned and submission is not None and submission.plan != "poison":
            crashed = sum(lease.how == "rescued" for lease in case.leases[ended.id])
            if crashed < 3:
                yield f"bystander {ended.id} ({submission.plan}) failed as poison"


def d1_cancel_before_start(case: Case) -> Iterator[str]:
    for entry in case.evidence.journal:
        if entry.verb != "cancel":
            continue
        for outcome in entry.answer:
            for run in outcome.ended:
                if any(
                    mark.run == run and mark.kind == "start" and mark.at > entry.at for mark in case.evidence.ledger
                ):
                    yield f"run {run} started after it was cancelled"


def d2_d3_cancel_running(case: Case) -> Iterator[str]:
    """What was running when its cancel was accepted can only end cancelled."""
    asked: dict[UUID, Instant] = {}
    for entry in case.evidence.journal:
        if entry.verb == "cancel":
            for outcome in entry.answer:
                for run in outcome.asked:
                    asked.setdefault(run, entry.at)
        elif entry.verb == "finish":
            for ending, verdict in zip(entry.asked[0][1], entry.answer, strict=True):
                if verdict == 0 and ending.id in asked and ending.state is not State.CANCELLED:
                    yield f"run {ending.id} ended {ending.state.word} after its cancel was accepted"
    for run in asked:
        found = case.snapshot.run(run)
        if found is not None and found.state is not State.CANCELLED:
            yield f"run {run} was asked to stop and is {found.state.word}"


def d4_pause(case: Case) -> Iterator[str]:
    for job, spans in case.evidence.job_pauses.items():
        for began, over in spans:
            for run in case.snapshot.of_job(job):
                inside = over is not None and began < run.scheduled_at < over - SLACK
                if run.origin == "schedule" and run.state is not State.SKIPPED and inside:
                    yield f"job {job} ran at {run.scheduled_at}, inside its pause"
    for queue, spans in case.evidence.queue_pauses.items():
        for began, over in spans:
            for entry in case.evidence.journal:
                taken = entry.verb == "claim" and over is not None and began < entry.at < over
                if taken and any(run.queue == queue for run in entry.answer):
                    yield f"a run was claimed from the paused queue {queue}"


def d5_timeout(case: Case) -> Iterator[str]:
    """An attempt does not stay open longer than its timeout, its grace and a second, unless its worker was gone."""
    for run, leases in case.leases.items():
        submission = _submission_of(case, run)
        if submission is None or submission.timeout is None:
            continue
        for lease in leases:
            ended = lease.ended_at or case.evidence.finished_at
            late = ended - lease.claimed_at - submission.timeout - submission.grace
            if late > 2 * SECOND and lease.how != "rescued" and not _troubled(case, lease, ended):
                yield f"run {run} was open {late / SECOND:.1f} s past its timeout"


def _troubled(case: Case, lease: Lease, ended: Instant) -> bool:
    process = case.evidence.worker_process.get(lease.worker, "")
    paused = any(
        name == process and began <= ended and over >= lease.claimed_at for name, began, over in case.evidence.pauses
    )
    return paused or lease.claimed_at < case.evidence.healed_at


def h1_liveness(case: Case) -> Iterator[str]:
    """After healing and time enough, nothing that could move stands still."""
    now = case.evidence.finished_at
    for run in case.snapshot.runs.values():
        if run.state is State.QUEUED and run.ready_at < now - 3 * SECOND:
            yield f"run {run.id} ({run.lane.task}) is still queued"
        elif run.state is State.RETRYING and run.ready_at < now - 5 * SECOND:
            yield f"run {run.id} should have been retried {(now - run.ready_at) / SECOND:.1f} s ago"
        elif run.state is State.RUNNING and run.started_at is not None and now - run.started_at > 40 * SECOND:
            yield f"run {run.id} ({run.lane.task}) is running without end"
    for job in case.snapshot.jobs.values():
        if (
            not job.state.ended
            and job.scheduled_at is not None
            and job.scheduled_at < now - 3 * SECOND
            and job.paused_at is None
        ):
            yield f"job {job.id} was due {(now - job.scheduled_at) / SECOND:.1f} s ago"


JUDGES: dict[str, Judge] = {
    "A1": a1_no_loss,
    "A2": a2_no_phantom,
    "A3": a3_conservation,
    "A5": a5_not_early,
    "B1": b1_one_end,
    "B5": b5_justified_repeats,
    "B6": b6_disjoint_leases,
    "B7": b7_self_stop,
    "B8": b8_fence_rises,
    "B9": b9_stale_refused,
    "B10": b10_ends_absorb,
    "C1": c1_retries,
    "C2": c2_dead_letters,
    "C3": c3_poison,
    "D1": d1_cancel_before_start,
    "D2, D3": d2_d3_cancel_running,
    "D4": d4_pause,
    "D5": d5_timeout,
    "E2": e2_overlap,
    "E4": e4_misfire,
    "H1": h1_liveness,
}


def judge(case: Case) -> list[str]:
    """Every violation, with the number of the invariant in front."""
    return [f"{name}: {problem}" for name, one in JUDGES.items() for problem in one(case)]
