"""Accidents drawn by chance, and a journal of which process was hurt how."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random

from tests.faults.cluster import Cluster, Role
from tests.support.processes import send_signal
from tests.support.servers import PostgresServer

PAUSE_SHORTEST, PAUSE_LONGEST = 0.5, 2.5
WORKER = ("--concurrency", "8")


class Accidents:
    """One every few seconds. `hurt` says what was done to each worker process."""

    def __init__(self, cluster: Cluster, server: PostgresServer | None, seed: int) -> None:
        self.cluster = cluster
        self.server = server
        self.random = Random(seed)
        self.did: Counter[str] = Counter()
        self.hurt: defaultdict[int, set[str]] = defaultdict(set)

    async def happen(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        kinds: list[Callable[[], None]] = []
        while time.monotonic() < ends_at:
            await asyncio.sleep(self.random.uniform(PAUSE_SHORTEST, PAUSE_LONGEST))
            if not kinds:  # each kind once before any comes again, in an order drawn anew
                kinds = self._kinds()
                self.random.shuffle(kinds)
            accident = kinds.pop()
            self.did[accident.__name__] += 1
            await asyncio.to_thread(accident)

    def _kinds(self) -> list[Callable[[], None]]:
        kinds: list[Callable[[], None]] = [
            self.kill_worker,
            self.kill_worker,
            self.kill_worker_and_keeper,
            self.kill_keeper,
            self.stop_keeper,
            self.kill_scheduler,
            self.stop_scheduler,
            self.stop_worker,
            self.kill_worker_role,
            self.drain_worker_role,
        ]
        if self.server is not None:
            kinds += [self.restart_server, self.crash_server, self.freeze_server]
        return kinds

    def kill_worker(self) -> None:
        pid = self._one_of(self.cluster.worker_pids())
        if pid is not None:
            self.hurt[pid].add("killed")
            send_signal(pid, signal.SIGKILL)

    def kill_worker_and_keeper(self) -> None:
        self.kill_worker()
        self.kill_keeper()

    def kill_keeper(self) -> None:
        pid = self._one_of(self.cluster.keeper_pids())
        if pid is not None:
            send_signal(pid, signal.SIGKILL)

    def stop_keeper(self) -> None:
        self._stop(self._one_of(self.cluster.keeper_pids()), self.random.uniform(0.2, 2.0))

    def stop_worker(self) -> None:
        """Shorter or longer than the stall limit."""
        pid = self._one_of(self.cluster.worker_pids())
        if pid is not None:
            self.hurt[pid].add("stopped")
            self._stop(pid, self.random.choice([0.5, 4.0]))

    def kill_scheduler(self) -> None:
        self._role("scheduler").kill()
        self.cluster.start("scheduler")

    def stop_scheduler(self) -> None:
        self._stop(self._role("scheduler").pid, self.random.uniform(0.2, 6.0))

    def kill_worker_role(self) -> None:
        """The supervisor dies, and what it started with it."""
        role = self._role("worker")
        for pid in self.cluster.worker_pids(role):
            self.hurt[pid].add("killed")
        role.kill()
        self.cluster.start("worker", *WORKER, host=role.host)

    def drain_worker_role(self) -> None:
        """SIGTERM; another takes its place."""
        role = self._role("worker")
        self.cluster.start("worker", *WORKER, host=role.host)
        for pid in self.cluster.worker_pids(role):
            self.hurt[pid].add("asked to leave")
        role.terminate()

    def restart_server(self) -> None:
        if self.server is not None:
            self.server.restart(self.random.choice(["fast", "immediate"]))

    def crash_server(self) -> None:
        if self.server is not None:
            self.server.kill()
            time.sleep(self.random.random())
            self.server.start()

    def freeze_server(self) -> None:
        if self.server is not None:
            self.server.freeze()
            time.sleep(self.random.uniform(0.2, 2.0))
            self.server.thaw()

    def _stop(self, pid: int | None, seconds: float) -> None:
        if pid is not None:
            send_signal(pid, signal.SIGSTOP)
            time.sleep(seconds)
            send_signal(pid, signal.SIGCONT)

    def _role(self, name: str) -> Role:
        roles = self.cluster.live(name)
        assert roles, f"no {name} runs any more, and not because of us\n{self.cluster.logs()[-20000:]}"
        return self.random.choice(roles)

    def _one_of(self, pids: list[int]) -> int | None:
        return self.random.choice(pids) if pids else None
