"""How long until the runs of a hurt process start again. Each scenario answers one number for each run that was held."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tests.faults.ledger import Line
from tests.faults.stage import Stage
from tests.support.processes import send_signal

HELD = 6
LONG_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds, against what was promised."""

    what: str
    promised: float
    seconds: list[float]
    accidents: int

    def quantile(self, share: float) -> float:
        """The smallest value that at least this share does not exceed."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    def __str__(self) -> str:
        values = f"p50 {self.quantile(0.5):.2f} s, p99 {self.quantile(0.99):.2f} s, max {max(self.seconds):.2f} s"
        return f"{self.what}: {values} (promised {self.promised:g} s; {self.accidents} accidents, {len(self.seconds)} runs)"


async def kills_of_a_worker(stage: Stage, count: int) -> Figure:
    seconds: list[float] = []
    for _ in range(count):
        runs, held = await _given_held_runs(stage)
        seconds += await _hurt(stage, runs, held, [_pid_of(held)], signal.SIGKILL)
    return Figure(f"kill -9 of a worker, {stage.store.capabilities.name}", 1.0, seconds, count)


async def kills_of_a_host(stage: Stage, count: int) -> Figure:
    """Supervisor, worker and keeper at once: nobody is left there to tell."""
    seconds: list[float] = []
    for _ in range(count):
        runs, held = await _given_held_runs(stage)
        pids = _host_of(stage, _pid_of(held))
        seconds += await _hurt(stage, runs, held, pids, signal.SIGKILL)
        await stage.start_workers("b" if _hosts(stage) == {"a"} else "a")
    return Figure(f"kill -9 of worker and keeper, {stage.store.capabilities.name}", 4.0, seconds, count)


async def stops_of_a_worker(stage: Stage, count: int, promised: float) -> Figure:
    """Stopped, and only let go on after its runs have started elsewhere: what it then writes must change nothing."""
    seconds: list[float] = []
    for _ in range(count):
        runs, held = await _given_held_runs(stage)
        pid = _pid_of(held)
        seconds += await _hurt(stage, runs, held, [pid], signal.SIGSTOP)
        send_signal(pid, signal.SIGCONT)
    return Figure(f"SIGSTOP of a worker, {stage.store.capabilities.name}", promised, seconds, count)


async def silences_of_a_host(stage: Stage, count: int, promised: float) -> Figure:
    seconds: list[float] = []
    for _ in range(count):
        runs, held = await _given_held_runs(stage)
        pids = _host_of(stage, _pid_of(held))
        seconds += await _hurt(stage, runs, held, pids, signal.SIGSTOP)
        for pid in pids:
            send_signal(pid, signal.SIGCONT)
    return Figure(f"a host silent, {stage.store.capabilities.name}", promised, seconds, count)


async def _given_held_runs(stage: Stage) -> tuple[list[UUID], list[Line]]:
    """Runs that have started, with room for them elsewhere; what earlier accidents left is cancelled."""
    await stage.until_kept()
    runs = await stage.submit("work", LONG_SECONDS, HELD)
    return runs, await stage.started(runs)


async def _hurt(
    stage: Stage, runs: Sequence[UUID], held: Sequence[Line], pids: Sequence[int], number: signal.Signals
) -> list[float]:
    victims = [run for run, line in zip(runs, held, strict=True) if line.pid in pids]
    fences = {line.fence for line in held}
    assert fences == {1}
    hurt_at = time.monotonic()
    for pid in pids:
        send_signal(pid, number)
    again = await stage.started(victims, fence_above=1)
    assert not {line.pid for line in again} & set(pids)
    await stage.store.cancel(runs)
    await stage.ended(runs)
    return [line.at - hurt_at for line in again]


def _pid_of(held: Sequence[Line]) -> int:
    """The process that holds the most."""
    pids = [line.pid for line in held]
    return max(set(pids), key=pids.count)


def _host_of(stage: Stage, pid: int) -> list[int]:
    """Everything on the host of this process, the keeper first."""
    host = next(seen.host for seen in stage.cluster.processes() if seen.pid == pid)
    found = [seen for seen in stage.cluster.processes() if seen.host == host and "scheduler" not in seen.command]
    return [seen.pid for seen in sorted(found, key=lambda seen: "keeper_main" not in seen.command)]


def _hosts(stage: Stage) -> set[str]:
    return {seen.host for seen in stage.cluster.processes() if "worker-process" in seen.command}
