"""Events added up: what metrics tell. Whole batches at once, so that a run costs next to nothing; nothing names a job.

A worker process adds up for itself and hands the sums to its supervisor, whose API is the one that is asked:
`take` and `add` are the two ends of that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter

import msgspec

from mainspring.core.model import SECOND
from mainspring.observe import events

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
_MANY = 20  # spans from which sorting them pays
_TASK_AND_QUEUE = attrgetter("task", "queue")
_BOUNDS_MICROSECONDS = tuple(round(bound * SECOND) for bound in BOUNDS)


class Histogram:
    """Counts per bucket; takes microseconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0

    def add(self, microseconds: int) -> None:
        self.counts[bisect_left(_BOUNDS_MICROSECONDS, microseconds)] += 1
        self.total += microseconds

    def add_many(self, spans: Sequence[int]) -> None:
        """A batch in one go: sorted once, and then only its bounds are looked for."""
        if len(spans) < _MANY:
            for span in spans:
                self.add(span)
            return
        ordered = sorted(spans)
        below = 0
        for place, bound in enumerate(_BOUNDS_MICROSECONDS):
            up_to = bisect_right(ordered, bound, below)
            self.counts[place] += up_to - below
            below = up_to
            if below == len(ordered):
                break
        self.counts[-1] += len(ordered) - below
        self.total += sum(ordered)

    @property
    def total_count(self) -> int:
        return sum(self.counts)

    def sums(self) -> tuple[list[int], int]:
        return self.counts, self.total

    def add_sums(self, sums: tuple[list[int], int]) -> None:
        self.counts = [ours + theirs for ours, theirs in zip(self.counts, sums[0], strict=True)]
        self.total += sums[1]

    def buckets(self) -> list[tuple[str, float]]:
        running, buckets = 0, []
        for bound, count in zip([*map(str, BOUNDS), "+Inf"], self.counts, strict=True):
            running += count
            buckets.append((bound, float(running)))
        return buckets


class Tally:
    """Subscribe `listen` to a bus."""

    def __init__(self) -> None:
        self._begin()

    def take(self) -> bytes:
        """Everything that was added up since the last time, in one line; empty where nothing was."""
        sums = Sums(
            ended=[(*labels, count) for labels, count in self.ended.items()],
            claimed=[(*labels, count) for labels, count in self.claimed.items()],
            submitted=dict(self.submitted),
            plain={name: count for name, count in self.plain.items() if count},
            lateness={name: histogram.sums() for name, histogram in self.lateness.items() if histogram.total_count},
            took={name: histogram.sums() for name, histogram in self.took.items()},
            fired_lateness=self.fired_lateness.sums(),
        )
        if not (sums.ended or sums.claimed or sums.submitted or sums.plain):
            return b""
        self._begin()
        return msgspec.json.encode(sums)

    def add(self, taken: bytes) -> None:
        """What another process took."""
        sums = msgspec.json.decode(taken, type=Sums)
        for task, queue, outcome, count in sums.ended:
            self.ended[task, queue, outcome] += count
        for task, queue, count in sums.claimed:
            self.claimed[task, queue] += count
        self.submitted.update(sums.submitted)
        self.plain.update(sums.plain)
        _add_all(self.lateness, sums.lateness)
        _add_all(self.took, sums.took)
        self.fired_lateness.add_sums(sums.fired_lateness)

    def listen(self, event: events.Event) -> None:
        match event:
            case events.RunsClaimed(_, runs):
                self._claim(runs)
            case events.RunsEnded(_, ended):
                self._end(ended)
            case events.JobsSubmitted(_, tasks):
                self.submitted.update(tasks)
            case events.RunsFired():
                self._fire(event)
            case _:
                self._count(event)

    def _begin(self) -> None:
        self.ended: Counter[tuple[str, str, str]] = Counter()
        self.claimed: Counter[tuple[str, str]] = Counter()
        self.submitted: Counter[str] = Counter()
        self.plain: Counter[str] = Counter(dict.fromkeys(PLAIN, 0))
        self.lateness: dict[str, Histogram] = {"default": Histogram()}
        self.took: dict[str, Histogram] = {}
        self.fired_lateness = Histogram()

    def _count(self, event: events.Event) -> None:
        match event:
            case events.RunsRescued(rescued):
                self.plain["mainspring_runs_rescued"] += len(rescued)
            case events.RunsRefused(_, refused):
                self.plain["mainspring_runs_refused_stale"] += len(refused)
            case events.RunsAbandoned(_, abandoned, _):
                self.plain["mainspring_runs_abandoned"] += len(abandoned)
            case events.RunsExpired(count):
                self.plain["mainspring_runs_expired"] += count
            case events.LogLinesDropped(_, count, _):
                self.plain["mainspring_log_lines_dropped"] += count
            case events.WorkerLost():
                self.plain["mainspring_workers_lost"] += 1
            case events.StoreLost():
                self.plain["mainspring_store_outages"] += 1
            case events.StepFailed():
                self.plain["mainspring_steps_failed"] += 1
            case _:
                pass

    def _claim(self, runs: object) -> None:
        assert isinstance(runs, list | tuple)
        self.claimed.update(map(_TASK_AND_QUEUE, runs))
        first: dict[str, list[int]] = {}
        for run in runs:
            if run.attempt == 1:
                first.setdefault(run.queue, []).append(run.lateness)
        for queue, spans in first.items():
            _histogram(self.lateness, queue).add_many(spans)

    def _end(self, ended: object) -> None:
        assert isinstance(ended, list | tuple)
        counted = Counter([(claimed.task, claimed.queue, ending.outcome) for claimed, ending, _ in ended])
        for (task, queue, outcome), count in counted.items():
            self.ended[task, queue, outcome.value] += count
        took: dict[str, list[int]] = {}
        for claimed, _, span in ended:
            took.setdefault(claimed.task, []).append(span)
        for task, spans in took.items():
            _histogram(self.took, task).add_many(spans)

    def _fire(self, event: events.RunsFired) -> None:
        self.plain["mainspring_runs_fired"] += len(event.runs)
        self.plain["mainspring_runs_skipped"] += event.skipped
        self.fired_lateness.add(event.lateness)


class Sums(msgspec.Struct, array_like=True):
    """A tally on its way."""

    ended: list[tuple[str, str, str, int]]
    claimed: list[tuple[str, str, int]]
    submitted: dict[str, int]
    plain: dict[str, int]
    lateness: dict[str, tuple[list[int], int]]
    took: dict[str, tuple[list[int], int]]
    fired_lateness: tuple[list[int], int]


def _histogram(histograms: dict[str, Histogram], name: str) -> Histogram:
    found = histograms.get(name)
    if found is None:
        found = histograms[name] = Histogram()
    return found


def _add_all(histograms: dict[str, Histogram], sums: Mapping[str, tuple[list[int], int]]) -> None:
    for name, each in sums.items():
        histograms.setdefault(name, Histogram()).add_sums(each)


PLAIN = {
    "mainspring_runs_fired": "Runs made by schedules",
    "mainspring_runs_skipped": "Occurrences that did not become runs",
    "mainspring_runs_rescued": "Runs taken from lost workers",
    "mainspring_runs_refused_stale": "Endings refused because somebody else holds the run",
    "mainspring_runs_abandoned": "Handlers that did not stop when asked",
    "mainspring_runs_expired": "Runs that were not started in time",
    "mainspring_log_lines_dropped": "Log lines of handlers that were not kept",
    "mainspring_workers_lost": "Workers declared lost",
    "mainspring_store_outages": "Times that a loop lost the store",
    "mainspring_steps_failed": "Steps that failed by a bug",
}
