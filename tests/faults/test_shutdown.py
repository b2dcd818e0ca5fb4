"""SIGTERM: what has started gets its time, the rest is given back, nothing is spent and no thread runs twice."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from mainspring.core.states import State
from tests.faults.judging import outcomes_of
from tests.faults.stage import Stage, stage
from tests.support.processes import alive
from tests.support.servers import PostgresServer

KINDS = ("sqlite", "postgres")
ONE_ATTEMPT = {"retry": {"max_attempts": 1}}

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_drain_waits_releases_and_spends_nothing(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    """What ends in time completes where it is; what does not goes on elsewhere, though it has but one attempt."""
    async with stage(kind, tmp_path, server=own_server, drain="3s") as on:
        await on.start_workers("a")
        short, long = await on.submit("work", 1.0, 3, **ONE_ATTEMPT), await on.submit("work", 4.5, 3, **ONE_ATTEMPT)
        held = await on.started([*short, *long])
        assert await _leave(on) == 0
        await on.start_workers("b")
        ended = await on.ended([*short, *long])
        assert {run.state for run in ended} == {State.COMPLETED}
        assert [run.attempt for run in ended] == [1] * 3 + [2] * 3
        assert [outcomes_of(run)[1] for run in ended[3:]] == ["released"] * 3
        assert not alive(held[0].pid)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_second_signal_ends_at_once(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    async with stage(kind, tmp_path, server=own_server, drain="60s") as on:
        await on.start_workers("a")
        runs = await on.submit("work", 2.5, 3, **ONE_ATTEMPT)
        await on.started(runs)
        role = on.cluster.live("worker")[0]
        began = time.monotonic()
        role.terminate()
        await asyncio.sleep(0.5)
        role.terminate()
        await asyncio.to_thread(role.process.wait, 20)
        seconds = time.monotonic() - began
        print(f"\nat once: {seconds:.1f} s after the first signal, {kind}")
        assert seconds <= 6.0
        await on.start_workers("b")
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 2)] * 3
        assert [outcomes_of(run)[1] for run in ended] == ["released"] * 3


@pytest.mark.parametrize("kind", KINDS)
async def test_no_thread_ever_runs_twice(kind: str, tmp_path: Path, own_server: PostgresServer) -> None:
    """It cannot be cancelled: its run starts again only after the process is gone, told by the keeper."""
    async with stage(kind, tmp_path, server=own_server, drain="1s") as on:
        await on.start_workers("a")
        runs = await on.submit("threaded", 3.0, 3, **ONE_ATTEMPT)
        held = await on.started(runs)
        await _leave(on)
        await on.start_workers("b")
        again = await on.started(runs, fence_above=1)
        spoke_last = max(line.at for line in on.ledger.of("tick") if line.pid == held[0].pid)
        assert spoke_last < min(line.at for line in again)
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 2)] * 3
        assert [outcomes_of(run)[1] for run in ended] == ["released"] * 3


@pytest.mark.parametrize(("on_lost", "state"), [("fail", State.FAILED), ("hold", State.UNKNOWN)])
async def test_a_drain_obeys_on_lost(on_lost: str, state: State, tmp_path: Path) -> None:
    async with stage("sqlite", tmp_path, drain="0.5s") as on:
        await on.start_workers("a")
        runs = [
            *await on.submit("work", 20.0, 1, on_lost=on_lost),
            *await on.submit("threaded", 20.0, 1, on_lost=on_lost),
        ]
        await on.started(runs)
        await _leave(on)
        assert [run.state for run in await on.in_state(runs, state)] == [state] * 2


async def _leave(on: Stage) -> int:
    """SIGTERM to the first worker role; its exit code."""
    role = on.cluster.live("worker")[0]
    role.terminate()
    return await asyncio.to_thread(role.process.wait, 40)
