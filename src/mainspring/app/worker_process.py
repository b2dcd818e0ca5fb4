"""A worker process: one application, one worker, tied to its supervisor."""

from __future__ import annotations

import asyncio
import logging
import os
import signal

from mainspring import __version__
from mainspring.app.application import Mainspring
from mainspring.app.child import DRAINED_BY_ORDER
from mainspring.app.connection import Connection, direct_of
from mainspring.app.garbage import collect_seldom
from mainspring.app.keeper import keeper_link
from mainspring.app.lifeline import LEAVING, LEFT_THREADS, STOP_NOW, WORKER, Lifeline
from mainspring.app.locate import locate
from mainspring.app.programs import run_loop
from mainspring.app.schedules import store_schedules
from mainspring.app.stopping import Stopping
from mainspring.app.stores import open_patiently, open_store, patiently
from mainspring.config import Settings
from mainspring.observe import logs
from mainspring.observe.events import Bus, Event, WorkerDraining, WorkerRevoked, WorkerStarted
from mainspring.observe.tally import Tally
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.worker import THREADS_LOST, Worker

TELL_EVERY_SECONDS = 0.5


def run_worker_process(descriptor: int) -> int:
    """Until the supervisor or a signal asks for the end, or the worker drains; answers the exit code."""
    # A Ctrl-C reaches the whole group; what it means for workers is for the supervisor to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline = Lifeline(descriptor)
    settings = lifeline.assignment.settings
    logs.configure(level=settings.log_level, form=settings.log_format)
    app = locate(lifeline.assignment.app)
    app.adopt(settings)
    collect_seldom()
    return run_loop(_live(app, settings, lifeline))


async def _live(app: Mainspring, settings: Settings, lifeline: Lifeline) -> int:
    stopping = Stopping()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.ask)

    def obey(order: bytes) -> None:
        if order == STOP_NOW:
            loop.call_soon_threadsafe(stopping.at_once.set)
        loop.call_soon_threadsafe(stopping.asked.set)

    lifeline.listen(obey)
    store = open_store(settings)
    try:
        # The supervisor has brought the schema up to date; a worker that meets an older one waits for nobody.
        if not await stopping.or_done(open_patiently(store, settings, allowed=False)):
            return 0
        return await _work(app, settings, store, stopping, lifeline)
    finally:
        await store.close()


async def _work(app: Mainspring, settings: Settings, store: Store, stopping: Stopping, lifeline: Lifeline) -> int:
    bus = Bus()
    bus.subscribe(logs.log_event)
    direct = direct_of(store, settings, bus)
    app.connections.lend(Connection(direct, lent=True))
    await patiently(lambda: store_schedules(direct, app.schedules))

    def hear(event: Event) -> None:
        if isinstance(event, WorkerStarted):
            lifeline.say(WORKER + str(event.worker).encode())
        elif isinstance(event, WorkerRevoked):
            lifeline.say(WORKER + str(event.successor).encode())
        elif isinstance(event, WorkerDraining) and event.why == THREADS_LOST:
            lifeline.say(LEAVING)

    tally = Tally()
    bus.subscribe(tally.listen)
    bus.subscribe(hear)
    telling = asyncio.create_task(_tell(tally, lifeline))
    worker = Worker(store, app.registry, SystemClock(), bus, settings_of(settings), keeper_link(settings))
    stops = asyncio.create_task(_pass_on(stopping, worker))
    try:
        code = await worker.run()
    finally:
        stops.cancel()
        telling.cancel()
        _tell_now(tally, lifeline)
    if code == 0 and not stopping.asked.is_set():
        code = DRAINED_BY_ORDER
    if worker.must_exit_hard:
        lifeline.say(LEFT_THREADS)
        # The store stays open: its sign of life may fall only when the threads are gone with this process.
        _exit_hard(code)
    return code


def _exit_hard(code: int) -> None:
    """Threads that do not stop would hold up a normal end for ever."""
    logging.shutdown()
    os._exit(code)


async def _tell(tally: Tally, lifeline: Lifeline) -> None:
    while True:
        await asyncio.sleep(TELL_EVERY_SECONDS)
        _tell_now(tally, lifeline)


def _tell_now(tally: Tally, lifeline: Lifeline) -> None:
    sums = tally.take()
    if sums:
        lifeline.say(sums)


async def _pass_on(stopping: Stopping, worker: Worker) -> None:
    await stopping.asked.wait()
    worker.request_stop()
    await stopping.at_once.wait()
    worker.request_stop()


def settings_of(settings: Settings) -> WorkerSettings:
    return WorkerSettings(
        slots=settings.concurrency,
        queues=settings.queues or None,
        lease=settings.lease,
        beat=settings.heartbeat,
        stall=settings.lease // 3,
        drain=settings.drain,
        version=__version__,
    )
