"""The judges of what schedules promise: overlap and misfire."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mainspring.core.ids import occurrence_id
from mainspring.core.model import Firing, Instant, Run
from mainspring.core.states import State
from tests.simulation.evidence import Entry, Submission

if TYPE_CHECKING:
    from tests.simulation.checkers import Case

SECOND = 1_000_000
CLOCK_ERROR = SECOND // 4  # what a scheduler may think the store's time is, under delays and a drifting clock


def e2_overlap(case: Case) -> Iterator[str]:
    """One run of a job at a time unless it allows more; what waits goes on in order, and is dropped only by its rule."""
    for submission in case.evidence.submissions.values():
        if submission.overlap is None:
            continue
        runs = [run for run in case.snapshot.of_job(submission.id) if run.origin in ("schedule", "trigger")]
        dropped = [run for run in runs if run.state is State.SKIPPED and run.reason == "overlap"]
        if dropped and submission.overlap in ("queue_all", "cancel", "allow"):
            yield f"job {submission.id} ({submission.overlap}) dropped {len(dropped)} occurrences for overlap"
        if submission.overlap != "allow":
            yield from _one_at_a_time(case, submission, runs)
        yield from _released(submission, [run for run in runs if not run.state.ended])


def _one_at_a_time(case: Case, submission: Submission, runs: list[Run]) -> Iterator[str]:
    started = [(case.leases[run.id][0].claimed_at, run) for run in runs if case.leases.get(run.id)]
    started.sort(key=lambda pair: pair[0])
    for (_, earlier), (claimed_at, later) in itertools.pairwise(started):
        if earlier.finished_at is None or earlier.finished_at > claimed_at:
            yield f"runs {earlier.id} and {later.id} of job {submission.id} ({submission.overlap}) overlap"
    scheduled = [run.scheduled_at for _, run in started if run.origin == "schedule"]
    if scheduled != sorted(scheduled):
        yield f"runs of job {submission.id} ({submission.overlap}) did not start in order"


def _released(submission: Submission, live: list[Run]) -> Iterator[str]:
    if live and all(run.state is State.HELD and run.reason == "overlap" for run in live):
        yield f"{len(live)} runs of job {submission.id} wait for a run that is not there"
    if submission.overlap == "queue_one":
        waiting = [run for run in live if run.reason == "overlap" and run.origin == "schedule" and not run.catch_up]
        if len(waiting) > 1:
            yield f"{len(waiting)} runs of job {submission.id} wait where one may"


def e4_misfire(case: Case) -> Iterator[str]:
    """Of what is misfired the policy picks what runs, and nothing is dropped that is only late."""
    by_kind: dict[str, int] = defaultdict(int)
    edited = {entry.asked[0][0].job_id for entry in case.evidence.journal if _is_edit(entry)}
    for at, firing in _applied(case):
        submission = case.evidence.submissions.get(firing.job_id)
        if firing.job_id in edited:  # its period is not the one that it began with
            continue
        if submission is None or submission.every is None or submission.misfire is None:
            continue
        by_kind[submission.misfire] += any(skip.reason == "misfire" for skip in firing.skips)
        yield from (f"job {submission.id} ({submission.misfire}): {what}" for what in _weigh(submission, firing, at))
        for run in firing.runs:
            record = case.snapshot.run(occurrence_id(firing.job_id, run.nominal))
            if record is not None and record.reason == "misfire":
                yield f"job {submission.id} ({submission.misfire}): {record.id} was to run and is recorded as missed"
    for policy, count in by_kind.items():
        case.evidence.counts[f"misfired_{policy}"] += count


def _applied(case: Case) -> Iterator[tuple[Instant, Firing]]:
    for entry in case.evidence.journal:
        if entry.verb == "fire":
            yield from _fired(entry)
        elif entry.verb == "change" and entry.answer is not None and entry.asked[0][0].firing is not None:
            yield entry.at, entry.asked[0][0].firing


def _is_edit(entry: Entry) -> bool:
    return entry.verb == "change" and entry.answer is not None and entry.asked[0][0].definition_changed


def _fired(entry: Entry) -> Iterator[tuple[Instant, Firing]]:
    for firing, answer in zip(entry.asked[0][0], entry.answer, strict=True):
        if answer.applied:
            yield entry.at, firing


def _weigh(submission: Submission, firing: Firing, at: Instant) -> Iterator[str]:
    assert submission.every is not None
    period = submission.every * SECOND
    patience = min(max(period // 2, 2 * SECOND), 60 * SECOND)
    caught_up = [run.nominal for run in firing.runs if run.catch_up]
    late = [run.nominal for run in firing.runs if not run.catch_up]
    dropped = [skip for skip in firing.skips if skip.reason == "misfire"]
    last_dropped = max((skip.nominal + (skip.stands_for - 1) * period for skip in dropped), default=0)
    if dropped and at - last_dropped < patience - CLOCK_ERROR:
        yield f"an occurrence was dropped {(at - last_dropped) / SECOND:.2f} s after its instant"
    allowed = {"skip": 0, "once": 0 if late else 1, "all": submission.misfire_limit}[submission.misfire or "once"]
    if len(caught_up) > allowed:
        yield f"{len(caught_up)} misfired occurrences ran, {allowed} may"
    if dropped and len(caught_up) < allowed:
        yield f"{len(caught_up)} misfired occurrences ran, {allowed} should"
    if caught_up and last_dropped > min(caught_up):
        yield "a newer occurrence was dropped and an older one ran"
