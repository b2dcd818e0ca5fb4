"""Handlers that kill their process or hold its loop, and what their neighbours notice of it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from mainspring.core.states import State
from tests.faults.judging import outcomes_of
from tests.faults.stage import stage
from tests.support.processes import send_signal, wait_until
from tests.support.servers import PostgresServer

KINDS = ("sqlite", "postgres")

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_that_kills_its_process_is_stopped_after_three_deaths(
    kind: str, tmp_path: Path, own_server: PostgresServer
) -> None:
    """C3: whatever `max_attempts` says; those beside it survive."""
    async with stage(kind, tmp_path, server=own_server) as on:
        await on.start_workers("a")
        bystanders = await on.submit("work", 2.0, 3)
        await on.started(bystanders)
        (poison,) = await on.submit("poison", retry={"max_attempts": 10, "initial": "0.1s"})
        (failed,) = await on.ended([poison])
        assert (failed.state, failed.deaths, failed.reason) == (State.FAILED, 3, "poison")
        assert len(on.ledger.of("start", poison)) == 3
        ended = await on.ended(bystanders)
        assert {run.state for run in ended} == {State.COMPLETED}
        assert max(run.deaths for run in ended) < 3


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handler_that_blocks_the_loop_is_killed_past_its_timeout(
    kind: str, tmp_path: Path, own_server: PostgresServer
) -> None:
    """D5: it alone has timed out; those beside it start again and no death counts against them."""
    async with stage(kind, tmp_path, server=own_server) as on:
        await on.start_workers("a")
        bystanders = await on.submit("work", 6.0, 5)
        await on.started(bystanders)
        (blocking,) = await on.submit(
            "blocks", 60.0, timeout="1s", cancel_grace="0.5s", retry={"max_attempts": 1, "initial": "0.1s"}
        )
        (start,) = await on.started([blocking])
        again = await on.started(bystanders, fence_above=1)
        (failed,) = await on.ended([blocking])
        print(f"\nbystanders of a blocked loop again after {max(line.at for line in again) - start.at:.1f} s, {kind}")
        assert max(line.at for line in again) - start.at <= 1.0 + 0.5 + 2.0 + 2.0
        assert (failed.state, failed.attempt, failed.deaths) == (State.FAILED, 1, 0)
        assert outcomes_of(failed).get(1, "timed_out") == "timed_out"
        ended = await on.ended(bystanders)
        assert [(run.state, run.deaths) for run in ended] == [(State.COMPLETED, 0)] * 5
        assert all(outcomes_of(run)[1] == "lost" for run in ended)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_stopped_worker_writes_later_is_refused(
    kind: str, tmp_path: Path, own_server: PostgresServer
) -> None:
    """B9: its handlers come to their end first, and yet only their successors' end counts."""
    async with stage(kind, tmp_path, server=own_server, lease="6s") as on:
        await on.start_workers("a", "b")
        runs = await on.submit("threaded", 4.0, 6)
        held = await on.started(runs)
        pid = held[0].pid
        stopped = [run for run, line in zip(runs, held, strict=True) if line.pid == pid]
        await asyncio.sleep(2.0)
        send_signal(pid, signal.SIGSTOP)
        again = await on.started(stopped, fence_above=1)
        send_signal(pid, signal.SIGCONT)
        ended = await on.ended(stopped)
        assert pid not in {line.pid for line in again}
        assert [(run.state, run.attempt, outcomes_of(run)[1]) for run in ended] == [(State.COMPLETED, 2, "lost")] * len(
            stopped
        )
        for run in stopped:
            assert [line.fence for line in on.ledger.of("end", run)] == [1, 2]


async def test_two_programs_share_a_sqlite_file(tmp_path: Path) -> None:
    """Both carry out runs, each run once."""
    async with stage("sqlite", tmp_path, schedulers=2) as on:
        await on.start_workers("a", "b", concurrency=4)
        runs = await on.submit("work", 0.05, 300)
        ended = await on.ended(runs)
        assert [(run.state, run.attempt) for run in ended] == [(State.COMPLETED, 1)] * 300
        starts = on.ledger.of("start")
        assert len(starts) == 300
        assert len({line.pid for line in starts}) == 2


def test_a_cluster_leaves_no_process_behind(tmp_path: Path) -> None:
    from tests.faults.cluster import Cluster

    cluster = Cluster(f"sqlite:///{tmp_path / 'faults.db'}", tmp_path)
    try:
        cluster.migrate()
        cluster.start("worker")
        cluster.await_workers(1)
        wait_until(lambda: len(cluster.keeper_pids()) == 1, "a keeper")
        send_signal(cluster.worker_pids()[0], signal.SIGSTOP)
    finally:
        cluster.close()
    assert cluster.processes() == []
