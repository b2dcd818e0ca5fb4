"""Sums of events as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from mainspring.core.model import SECOND
from mainspring.observe.tally import PLAIN, Histogram, Tally

L = TypeVar("L", bound=tuple[str, ...])
Family = CounterMetricFamily | HistogramMetricFamily


class Metrics(Collector):
    """`tally.listen` hears a bus, `tally.add` other processes; `text()` is what /metrics answers."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, tally: Tally | None = None) -> None:
        self.tally = tally or Tally()
        self.listen = self.tally.listen
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Family]:
        tally = self.tally
        yield _counter("mainspring_runs_ended", "Ended attempts", ("task", "queue", "outcome"), tally.ended)
        yield _counter("mainspring_runs_claimed", "Claimed runs", ("task", "queue"), tally.claimed)
        submitted: dict[tuple[str, ...], int] = {(task,): count for task, count in tally.submitted.items()}
        yield _counter("mainspring_jobs_submitted", "Submitted jobs", ("task",), submitted)
        for name, help_text in PLAIN.items():
            yield CounterMetricFamily(name, help_text, value=tally.plain[name])
        yield _histogram("mainspring_run_lateness_seconds", "From due to started", "queue", tally.lateness)
        yield _histogram("mainspring_run_duration_seconds", "How long handlers took", "task", tally.took)
        fired = HistogramMetricFamily("mainspring_fire_lateness_seconds", "The latest occurrence of each batch fired")
        fired.add_metric([], tally.fired_lateness.buckets(), tally.fired_lateness.total / SECOND)
        yield fired


def _counter(name: str, text: str, labels: tuple[str, ...], counts: Mapping[L, int]) -> Family:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in list(counts.items()):
        family.add_metric(list(values), count)
    return family


def _histogram(name: str, text: str, label: str, histograms: dict[str, Histogram]) -> Family:
    family = HistogramMetricFamily(name, text, labels=[label])
    for value, histogram in list(histograms.items()):
        family.add_metric([value], histogram.buckets(), histogram.total / SECOND)
    return family
