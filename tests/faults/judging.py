"""Holds what the store says against what the ledger saw: nothing lost, every repeat explained."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from mainspring.core.model import Run
from mainspring.core.states import State
from tests.faults.ledger import Line


def judge(runs: Sequence[Run | None], accepted: Sequence[UUID], lines: Sequence[Line]) -> list[str]:
    """Every accepted job has one end; a completed one has a good end in the ledger; each further start has its cause."""
    starts: dict[str, list[Line]] = defaultdict(list)
    ends: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        (starts if line.kind == "start" else ends if line.kind == "end" else defaultdict(list))[line.run].append(line)
    problems = []
    for identity, run in zip(accepted, runs, strict=True):
        if run is None:
            problems.append(f"accepted {identity} is nowhere")
            continue
        problems += judge_run(run, starts[str(run.id)], ends[str(run.id)])
    return problems


def judge_run(run: Run, starts: Sequence[Line], ends: Sequence[Line]) -> list[str]:
    problems = []
    if not run.state.ended:
        problems.append(f"{run.id} is {run.state.word} still")
    if run.state is State.COMPLETED and not ends:
        problems.append(f"{run.id} is completed and no handler came to its end")
    explained = {attempt["number"] for attempt in json.loads(run.attempts or "[]")} | {run.attempt}
    unexplained = [line.attempt for line in starts if line.attempt not in explained]
    problems += [f"{run.id} started attempt {number}, of which there is no record" for number in unexplained]
    fences = [line.fence for line in starts]
    if len(set(fences)) != len(fences):
        problems.append(f"{run.id} started twice with one fence: {fences}")
    outcomes = [attempt["outcome"] for attempt in json.loads(run.attempts or "[]")]
    if outcomes.count("completed") > 1:
        problems.append(f"{run.id} completed twice: {outcomes}")
    return problems
