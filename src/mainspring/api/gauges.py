"""What stands in the store at the moment of asking, as gauges beside the counters of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Stats = Mapping[str, object]

_PLAIN = {
    "workers": ("mainspring_workers", "Worker processes"),
    "schedulers": ("mainspring_schedulers", "Schedulers"),
    "dead_letters": ("mainspring_dead_letters", "Failed runs that wait for a person"),
}
_STANDING = ("queued", "running", "held")


class Gauges(Collector):
    """The numbers of one look at the store."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def text(self) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for field, (name, about) in _PLAIN.items():
            yield GaugeMetricFamily(name, about, value=float(cast("int", self._stats[field])))
        queues = cast("list[dict[str, object]]", self._stats["queues"])
        runs = GaugeMetricFamily("mainspring_queue_runs", "Runs in a queue", labels=["queue", "status"])
        paused = GaugeMetricFamily("mainspring_queue_paused", "1 where a queue is paused", labels=["queue"])
        for queue in queues:
            name = str(queue["name"])
            for status in _STANDING:
                runs.add_metric([name, status], float(cast("int", queue[status])))
            paused.add_metric([name], float(bool(queue["paused"])))
        yield runs
        yield paused
