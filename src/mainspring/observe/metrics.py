"""Events counted for Prometheus. Whole batches are added up here, so that a run costs next to nothing; no label names a job."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from mainspring.core.model import SECOND
from mainspring.observe import events

Family = CounterMetricFamily | HistogramMetricFamily

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
_BOUNDS_MICROSECONDS = tuple(round(bound * SECOND) for bound in _BOUNDS)


class Histogram:
    """Counts per bucket; takes microseconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0

    def add(self, microseconds: int) -> None:
        self.counts[bisect_left(_BOUNDS_MICROSECONDS, microseconds)] += 1
        self.total += microseconds

    def buckets(self) -> list[tuple[str, float]]:
        running, buckets = 0, []
        for bound, count in zip([*map(str, _BOUNDS), "+Inf"], self.counts, strict=True):
            running += count
            buckets.append((bound, float(running)))
        return buckets


class Metrics(Collector):
    """Subscribe `listen` to a bus; `text()` is what /metrics answers."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        self._ended: Counter[tuple[str, ...]] = Counter()
        self._claimed: Counter[tuple[str, ...]] = Counter()
        self._submitted: Counter[str] = Counter()
        self._plain: Counter[str] = Counter(dict.fromkeys(_PLAIN, 0))
        self._lateness: dict[str, Histogram] = {"default": Histogram()}
        self._took: dict[str, Histogram] = {}
        self._fired_lateness = Histogram()

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def listen(self, event: events.Event) -> None:
        match event:
            case events.RunsClaimed(_, runs):
                self._claim(runs)
            case events.RunsEnded(_, ended):
                self._end(ended)
            case events.JobsSubmitted(_, tasks):
                self._submitted.update(tasks)
            case events.RunsFired():
                self._fire(event)
            case _:
                self._count(event)

    def _count(self, event: events.Event) -> None:
        match event:
            case events.RunsRescued(rescued):
                self._plain["mainspring_runs_rescued"] += len(rescued)
            case events.RunsRefused(_, refused):
                self._plain["mainspring_runs_refused_stale"] += len(refused)
            case events.RunsAbandoned(_, abandoned, _):
                self._plain["mainspring_runs_abandoned"] += len(abandoned)
            case events.RunsExpired(count):
                self._plain["mainspring_runs_expired"] += count
            case events.LogLinesDropped(_, count, _):
                self._plain["mainspring_log_lines_dropped"] += count
            case events.WorkerLost():
                self._plain["mainspring_workers_lost"] += 1
            case events.StoreLost():
                self._plain["mainspring_store_outages"] += 1
            case events.StepFailed():
                self._plain["mainspring_steps_failed"] += 1
            case _:
                pass

    def collect(self) -> Iterator[Family]:
        yield _counter("mainspring_runs_ended", "Ended attempts", ("task", "queue", "outcome"), self._ended)
        yield _counter("mainspring_runs_claimed", "Claimed runs", ("task", "queue"), self._claimed)
        submitted: dict[tuple[str, ...], int] = {(task,): count for task, count in self._submitted.items()}
        yield _counter("mainspring_jobs_submitted", "Submitted jobs", ("task",), submitted)
        for name, help_text in _PLAIN.items():
            yield CounterMetricFamily(name, help_text, value=self._plain[name])
        yield _histogram("mainspring_run_lateness_seconds", "From due to started", "queue", self._lateness)
        yield _histogram("mainspring_run_duration_seconds", "How long handlers took", "task", self._took)
        fired = HistogramMetricFamily("mainspring_fire_lateness_seconds", "The latest occurrence of each batch fired")
        fired.add_metric([], self._fired_lateness.buckets(), self._fired_lateness.total / SECOND)
        yield fired

    def _claim(self, runs: object) -> None:
        assert isinstance(runs, list | tuple)
        self._claimed.update([(run.task, run.queue) for run in runs])
        for run in runs:
            if run.attempt == 1:
                histogram = self._lateness.get(run.queue)
                if histogram is None:
                    histogram = self._lateness[run.queue] = Histogram()
                histogram.add(run.lateness)

    def _end(self, ended: object) -> None:
        assert isinstance(ended, list | tuple)
        self._ended.update([(claimed.task, claimed.queue, ending.outcome.value) for claimed, ending, _ in ended])
        for claimed, _, took in ended:
            histogram = self._took.get(claimed.task)
            if histogram is None:
                histogram = self._took[claimed.task] = Histogram()
            histogram.add(took)

    def _fire(self, event: events.RunsFired) -> None:
        self._plain["mainspring_runs_fired"] += len(event.runs)
        self._plain["mainspring_runs_skipped"] += event.skipped
        self._fired_lateness.add(event.lateness)


def _counter(name: str, text: str, labels: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> Family:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in list(counts.items()):
        family.add_metric(list(values), count)
    return family


def _histogram(name: str, text: str, label: str, histograms: dict[str, Histogram]) -> Family:
    family = HistogramMetricFamily(name, text, labels=[label])
    for value, histogram in list(histograms.items()):
        family.add_metric([value], histogram.buckets(), histogram.total / SECOND)
    return family


_PLAIN = {
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
