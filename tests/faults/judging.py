"""Holds what the store says against what the ledger saw: nothing lost, every repeat explained.

The letters are those of the invariants in the simulation's checkers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from mainspring.core.model import Run
from mainspring.core.states import State
from tests.faults.ledger import Line

DEATHS_THAT_FAIL = 3

# A process to what was done to it: "killed", "stopped", "asked to leave".
Journal = Mapping[int, set[str]]


def judge(runs: Sequence[Run | None], accepted: Sequence[UUID], lines: Sequence[Line], journal: Journal) -> list[str]:
    """What is wrong, in words; an empty list is the verdict that all is well."""
    told: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        told[line.run].append(line)
    problems = []
    for identity, run in zip(accepted, runs, strict=True):
        if run is None:
            problems.append(f"A1 accepted {identity} is nowhere")
        else:
            problems += [f"{text} · {_account(run, told[str(run.id)])}" for text in judge_run(run, told, journal)]
    known = {str(run.id) for run in runs if run is not None}
    problems += [f"A2 {name} was started and nobody asked for it" for name in told if name not in known]
    return problems


def judge_run(run: Run, told: Mapping[str, Sequence[Line]], journal: Journal) -> list[str]:
    lines = told[str(run.id)]
    starts = [line for line in lines if line.kind == "start"]
    return [
        *_judge_end(run, lines),
        *_judge_fences(starts),
        *_judge_repeats(run, starts, journal),
        *_judge_overlap(lines, starts, journal),
    ]


def outcomes_of(run: Run) -> dict[int, str]:
    """Each ended attempt's outcome by its number, as far as there is a list."""
    return {attempt["number"]: attempt["outcome"] for attempt in json.loads(run.attempts or "[]")}


def _judge_end(run: Run, lines: Sequence[Line]) -> list[str]:
    if not run.state.ended:
        return [f"A1 {run.id} is {run.state.word} still"]
    problems = []
    ended = {line.attempt for line in lines if line.kind == "end"}
    if run.state is State.COMPLETED and run.attempt not in ended:
        problems.append(f"A1 {run.id} is completed by attempt {run.attempt} and that handler did not come to its end")
    outcomes = list(outcomes_of(run).values())
    if outcomes.count("completed") > 1:
        problems.append(f"B1 {run.id} completed twice: {outcomes}")
    if run.state is State.FAILED and outcomes.count("lost") < DEATHS_THAT_FAIL:
        problems.append(f"C1 {run.id} failed after {outcomes}")
    return problems


def _judge_fences(starts: Sequence[Line]) -> list[str]:
    fences = [line.fence for line in starts]
    return [] if len(set(fences)) == len(fences) else [f"B8 {starts[0].run} started twice with one fence: {fences}"]


def _judge_repeats(run: Run, starts: Sequence[Line], journal: Journal) -> list[str]:
    """Each attempt but the last has an outcome that allows another one; a lost one's process was hurt by us."""
    outcomes = outcomes_of(run)
    problems = []
    for line in starts:
        outcome = outcomes.get(line.attempt)
        if outcome is None and line.attempt != run.attempt:
            problems.append(f"B5 {run.id} started attempt {line.attempt}, of which there is no record")
        if outcome == "lost" and not journal.get(line.pid):
            problems.append(f"B5 {run.id} lost attempt {line.attempt}, whose process {line.pid} nobody had hurt")
        if outcome == "released" and "asked to leave" not in journal.get(line.pid, ()):
            problems.append(f"B5 {run.id} released attempt {line.attempt}; {line.pid} was not asked to leave")
    return problems


def _judge_overlap(lines: Sequence[Line], starts: Sequence[Line], journal: Journal) -> list[str]:
    """No handler says anything after its successor has started, unless its process was stopped meanwhile."""
    problems = []
    for line in lines:
        successors = [start.at for start in starts if start.fence > line.fence]
        if successors and line.at > min(successors) and "stopped" not in journal.get(line.pid, ()):
            late = line.at - min(successors)
            problems.append(f"B7 {line.run} attempt {line.attempt} said {line.kind!r} {late:.3f} s after its successor")
    return problems


def _account(run: Run, lines: Sequence[Line]) -> str:
    began = lines[0].at if lines else 0.0
    told = " ".join(f"{line.at - began:.3f}:{line.kind}#{line.attempt}/{line.fence}@{line.pid}" for line in lines)
    state = f"{run.state.word} attempt {run.attempt} fence {run.fence} deaths {run.deaths} {run.reason}"
    return f"{state} {outcomes_of(run)} ledger: {told}"
