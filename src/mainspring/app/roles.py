"""What `up`, `api`, `scheduler` and `worker` run: the chosen roles in one process, workers in children of it.

A handler can end its process, block its loop or eat its memory; so handlers live in worker processes of their own,
and the API and the scheduler, which run no user's code, survive them.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from mainspring.app.application import Mainspring
from mainspring.app.child import DRAINED_BY_ORDER, Child
from mainspring.app.connection import direct_of
from mainspring.app.deaths import Deaths
from mainspring.app.lifeline import Assignment
from mainspring.app.listening import address_of, listen_on
from mainspring.app.reloading import code_of, reloading
from mainspring.app.removed import disable_removed
from mainspring.app.schedules import store_schedules
from mainspring.app.stopping import Stopping
from mainspring.app.stores import open_patiently, open_store, patiently
from mainspring.app.supervisor import Supervisor
from mainspring.config import Settings
from mainspring.core.model import SECOND
from mainspring.observe import logs
from mainspring.observe.events import Bus
from mainspring.observe.tally import Tally
from mainspring.ports.store import Store
from mainspring.worker.settings import REPLACE

WORKERS_READY_SECONDS_MAX = 5.0
STOPPED_AT_ONCE = 1
CLEAN = frozenset({0, DRAINED_BY_ORDER, REPLACE})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run here; `app_name` is the MODULE:APP that worker processes import."""

    settings: Settings
    roles: frozenset[str]
    app: Mainspring | None = None
    app_name: str = ""
    migrate: bool = False
    reload: bool = False
    open_browser: bool = False


async def carry_out(plan: Plan) -> int:
    """Runs until a signal asks for the end; answers the exit code."""
    stopping = Stopping()
    stopping.listen()
    with contextlib.ExitStack() as open_things:
        listener = open_things.enter_context(listen_on(plan.settings)) if "api" in plan.roles else None
        store = open_store(plan.settings)
        try:
            if await stopping.or_done(open_patiently(store, plan.settings, allowed=plan.migrate)):
                return await _Roles(plan, store, stopping, listener).run()
            return 0
        finally:
            await store.close()


class _Roles:
    def __init__(self, plan: Plan, store: Store, stopping: Stopping, listener: socket.socket | None) -> None:
        self._plan = plan
        self._store = store
        self._stopping = stopping
        self._listener = listener
        self._bus = Bus()
        self._tally = Tally()
        self._deaths = Deaths(store, self._bus)
        self._bus.subscribe(logs.log_event)
        self._bus.subscribe(self._tally.listen)
        self._direct = direct_of(store, plan.settings, self._bus)

    async def run(self) -> int:
        supervisor = self._supervisor()
        code = code_of(Path.cwd()) if self._plan.reload else {}
        if supervisor is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, supervisor.resume)
        # Worker processes take the longest to start: first of all.
        working = asyncio.create_task(supervisor.run(), name="supervisor") if supervisor else None
        try:
            async with contextlib.AsyncExitStack() as parts:
                await self._start(parts)
                await self._say_ready(supervisor)
                if supervisor is not None and self._plan.reload:
                    await parts.enter_async_context(reloading(supervisor, code))
                await self._until_stopped(working)
                return await self._drain(supervisor)
        finally:
            if working is not None and supervisor is not None and not working.done():
                await supervisor.stop_now()
                await asyncio.gather(working, return_exceptions=True)
            await self._deaths.close()

    def _supervisor(self) -> Supervisor[Child] | None:
        plan = self._plan
        if "worker" not in plan.roles or not plan.app_name:
            return None
        assignment = Assignment(plan.app_name, plan.settings)
        drain_seconds = plan.settings.drain / SECOND
        hear_sums = self._tally.add
        return Supervisor(
            lambda: Child.start(assignment, hear_sums),
            plan.settings.processes,
            drain_seconds=drain_seconds,
            on_end=lambda child, code: self._deaths.tell(child, clean=code in CLEAN),
        )

    async def _start(self, parts: contextlib.AsyncExitStack) -> None:
        """The parts stop in the reverse order: the API answers until everything else has stopped."""
        if self._listener is not None:
            from mainspring.app.http import serving
            from mainspring.observe.metrics import Metrics

            strict = self._plan.settings.strict_tasks
            direct = direct_of(self._store, self._plan.settings, self._bus, strict_tasks=strict)
            await parts.enter_async_context(serving(direct, Metrics(self._tally), self._listener))
        if "scheduler" in self._plan.roles:
            from mainspring.app.scheduling import scheduling

            if self._plan.app is not None:
                declared = self._plan.app.schedules
                await patiently(lambda: store_schedules(self._direct, declared))
                await disable_removed(self._direct, declared, self._plan.app.modules)
            await parts.enter_async_context(scheduling(self._store, self._bus, self._plan.settings))

    async def _say_ready(self, supervisor: Supervisor[Child] | None) -> None:
        if supervisor is not None:
            # Most tests and people submit at once; but a slow start hook must not hide the API for long.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WORKERS_READY_SECONDS_MAX):
                    await supervisor.ready.wait()
        address = address_of(self._listener) if self._listener is not None else ""
        sys.stdout.write(f"ready {address}".rstrip() + "\n")
        sys.stdout.flush()
        if self._plan.open_browser and address:
            import webbrowser

            await asyncio.to_thread(webbrowser.open, address)

    async def _until_stopped(self, working: asyncio.Task[None] | None) -> None:
        """Workers alone have nothing left to do once each of them was drained by an order."""
        if working is not None and self._plan.roles == {"worker"}:
            await self._stopping.or_done(asyncio.shield(working))
        else:
            await self._stopping.asked.wait()

    async def _drain(self, supervisor: Supervisor[Child] | None) -> int:
        if supervisor is None:
            return 0
        drained = await self._stopping.or_at_once(supervisor.drain(), supervisor.stop_now)
        return 0 if drained else STOPPED_AT_ONCE
