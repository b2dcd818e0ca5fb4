"""The store goes away and comes back, keepers die: handlers go on, nobody is accused."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from mainspring.core.states import State
from tests.faults.judging import outcomes_of
from tests.faults.stage import Stage, stage
from tests.support.processes import send_signal
from tests.support.servers import PostgresServer

pytestmark = pytest.mark.timeout(120)

HANDLERS = 1000


async def test_a_thousand_running_handlers_outlive_a_restart_of_the_server(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    """None is ended, repeated or lost (A1, B5)."""
    async with stage("postgres", tmp_path, server=own_server) as on:
        await on.start_workers("a", concurrency=HANDLERS)
        runs = await on.submit("work", 10.0, HANDLERS)
        held = await on.started(runs)
        began = time.monotonic()
        await asyncio.to_thread(own_server.restart, "fast")
        down = time.monotonic() - began
        assert not on.ledger.of("end"), "the server was back too late for a verdict"
        ended = await on.ended(runs)
        print(f"\nserver away for {down:.1f} s under {len(held)} running handlers; each ended once")
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 1)] * HANDLERS
        assert len(on.ledger.of("start")) == len(on.ledger.of("end")) == HANDLERS
        assert not on.ledger.of("cancelled")


async def test_an_outage_shorter_than_the_lease_ends_no_handler(tmp_path: Path, own_server: PostgresServer) -> None:
    async with stage("postgres", tmp_path, server=own_server, lease="6s") as on:
        await on.start_workers("a", "b")
        runs = [*await on.submit("work", 5.0, 4), *await on.submit("work", 1.0, 4)]
        await on.started(runs)
        await asyncio.to_thread(own_server.halt, "immediate")
        await asyncio.sleep(3.0)
        await asyncio.to_thread(own_server.start)
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 1)] * 8
        assert not on.ledger.of("cancelled")


async def test_an_outage_longer_than_the_lease_stops_handlers_before_it_and_repeats_them(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    """Measured from the last renewal that was acknowledged; a run that bears more silence goes on."""
    async with stage("postgres", tmp_path, server=own_server, lease="3s") as on:
        await on.start_workers("a")
        runs, patient = await on.submit("work", 5.0, 2), await on.submit("work", 6.0, 1, lost_after="60s")
        await on.started([*runs, *patient])
        began = time.monotonic()
        await asyncio.to_thread(own_server.halt, "immediate")
        stopped = await on.told(runs, "cancelled")
        await asyncio.sleep(1.0)
        await asyncio.to_thread(own_server.start)
        assert max(line.at for line in stopped) - began <= 3.0 + 0.5
        (run,) = await on.ended(patient)
        assert (run.state, run.attempt) == (State.COMPLETED, 1)
        ended = await on.ended(runs)
        assert {run.state for run in ended} == {State.COMPLETED}
        assert [outcomes_of(run)[1] for run in ended] == ["lost", "lost"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_killed_keeper_is_replaced_and_nobody_accused(
    kind: str, tmp_path: Path, own_server: PostgresServer
) -> None:
    async with stage(kind, tmp_path, server=own_server, lease="6s") as on:
        await on.start_workers("a", "a")
        runs = await on.submit("work", 4.0, 6)
        await on.started(runs)
        seconds = [await _kill_keeper(on) for _ in range(2)]
        print(f"\nanother keeper after {max(seconds):.2f} s, {kind}")
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 1)] * 6
        assert " lost" not in on.cluster.logs()


async def test_a_frozen_server_accuses_nobody(tmp_path: Path, own_server: PostgresServer) -> None:
    """Connections stay open and nothing answers, for most of a lease."""
    async with stage("postgres", tmp_path, server=own_server, lease="6s") as on:
        await on.start_workers("a", "b")
        runs = await on.submit("work", 5.0, 6)
        await on.started(runs)
        own_server.freeze()
        await asyncio.sleep(4.0)
        own_server.thaw()
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 1)] * 6
        assert not on.ledger.of("cancelled")


async def _kill_keeper(on: Stage) -> float:
    """How long until another one stands beside the workers."""
    before = set(on.cluster.keeper_pids())
    began = time.monotonic()
    for pid in before:
        send_signal(pid, signal.SIGKILL)
    await on.wait_until(lambda: bool(set(on.cluster.keeper_pids()) - before), "another keeper")
    return time.monotonic() - began
