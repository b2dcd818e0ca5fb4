"""What a system that has nothing to do costs: memory of each process, and time on the processor."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

from tests.faults.cluster import Cluster, Seen
from tests.support.processes import processor_seconds


class Cost(NamedTuple):
    """Of one process; `core` is the share of one core."""

    name: str
    rss_mb: float
    core: float

    def __str__(self) -> str:
        return f"{self.name} {self.rss_mb:.0f} MB {self.core:.2%}"


async def measure(cluster: Cluster, seconds: float) -> list[Cost]:
    before = {seen.pid: processor_seconds(seen.pid) for seen in cluster.processes()}
    began = time.monotonic()
    await asyncio.sleep(seconds)
    passed = time.monotonic() - began
    seen_now = [seen for seen in cluster.processes() if seen.pid in before]
    return [
        Cost(_name_of(seen), rss_mb(seen.pid), (processor_seconds(seen.pid) - before[seen.pid]) / passed)
        for seen in seen_now
    ]


def rss_mb(pid: int) -> float:
    (line,) = [text for text in Path(f"/proc/{pid}/status").read_text().splitlines() if text.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def _name_of(seen: Seen) -> str:
    if "worker-process" in seen.command:
        return "worker"
    return "keeper" if "keeper_main" in seen.command else "api+scheduler+supervisor"
