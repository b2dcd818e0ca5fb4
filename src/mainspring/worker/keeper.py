"""The keeper: a small process beside the workers of a host. It renews for all of them, and tells of a death at once.

It holds a handle on each worker process, so that an end is seen in the moment it happens and cannot be mistaken. What
it has to tell it goes on telling until the store answers. It ends by itself a while after its last worker.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from mainspring.core.ids import uuid7
from mainspring.core.model import BeatAnswer, Evidence
from mainspring.observe.events import Bus, Event, StepFailed, StoreBack, StoreLost
from mainspring.observe.loop import Loop
from mainspring.ports.clock import Clock
from mainspring.ports.store import Store
from mainspring.worker.charge import Charge
from mainspring.worker.letters import acknowledgement, read_line

_LOOK_EVERY = 0.25
_BLOCKED_PATIENCE = 1.0
_OWN_PAUSE = 2.0  # a look that comes this much later than planned: the keeper itself did not run
_LINGER = 5.0
_LAST_WORDS = 0.5
_GIVE_UP = 600.0
_RESCUE_MAX = 500

_log = logging.getLogger("mainspring.keeper")


def keep(open_store: Callable[[], Store], clock: Clock, path: Path) -> None:
    """A keeper process's whole life; it ends at once where another one serves at `path` already."""
    lock = _take_lock(path)
    if lock is None:
        return
    path.unlink(missing_ok=True)
    try:
        asyncio.run(Keeper(open_store, clock).run(path))
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


class Report(NamedTuple):
    worker: UUID
    evidence: Evidence
    culprit: UUID | None


class Keeper:
    """`open_store` makes a store that is not connected yet; a store whose processes show their own signs is opened late."""

    def __init__(self, open_store: Callable[[], Store], clock: Clock, *, linger: float = _LINGER) -> None:
        self._open_store = open_store
        self._clock = clock
        self._linger = linger
        self._store: Store | None = None
        self._opened = False
        self._identity = UUID(int=0)
        self._charges: dict[int, Charge] = {}
        self._reports: deque[Report] = deque()
        self._last_words: set[asyncio.Task[None]] = set()
        self._alone_since: float | None = None
        self._looked_at = clock.monotonic()
        bus = Bus()
        bus.subscribe(_log_event)
        self._loops = [Loop(name, clock=clock, bus=bus) for name in ("renew", "report", "look")]
        self._renew_loop, self._report_loop, look_loop = self._loops
        self._renew_loop.step = self.step_renew
        self._report_loop.step = self.step_report
        look_loop.step = self.step_look

    async def run(self, path: Path) -> None:
        """Serves at `path` until nobody has needed it for a while."""
        server = await asyncio.start_unix_server(self._serve, str(path))
        try:
            self._alone_since = self._clock.monotonic()
            await asyncio.gather(*(loop.run() for loop in self._loops))
        finally:
            server.close()
            if self._store is not None and self._opened:
                await self._store.close()

    # --- steps --------------------------------------------------------------------------------------------------

    async def step_renew(self, now: float) -> float | None:
        """Renews for all in one call; passes on when the renewal was sent and what was ordered."""
        del now
        store = self._known_store()
        if store.capabilities.process_signs:
            return None
        charges = [charge for charge in self._charges.values() if charge.renewable]
        await self._ready()
        if not charges:
            return None
        workers = [charge.worker for charge in charges if charge.worker is not None]
        sent = self._clock.monotonic()
        answers = await store.beat(workers, keeper=self._identity)
        for charge, worker, answer in zip(charges, workers, answers, strict=True):
            if charge.worker == worker:
                self._pass_on(charge, sent, answer)
        return min(charge.beat for charge in charges)

    async def step_report(self, now: float) -> float | None:
        """Tells one end, and has the runs of the ended taken up at once."""
        if not self._reports:
            return None
        if self._alone_since is not None and now - self._alone_since > _GIVE_UP:
            self._reports.clear()  # nobody of ours is left to be hurt, and the watchers have had their time
            return None
        store = await self._ready()
        report = self._reports[0]
        if await store.declare_lost(report.worker, report.evidence, culprit=report.culprit):
            _log.warning("worker %s lost: %s", report.worker, report.evidence.value)
            while len(await store.rescue(limit=_RESCUE_MAX, random_value=self._clock.random())) == _RESCUE_MAX:
                continue
        self._reports.popleft()
        return 0.0

    async def step_look(self, now: float) -> float | None:
        """Looks at each process; nothing here waits for a store."""
        if now - self._looked_at > _OWN_PAUSE:
            for charge in self._charges.values():
                charge.stopped_since = None
        self._looked_at = now
        for charge in list(self._charges.values()):
            self._look_at(charge, now)
        if self._charges:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since >= self._linger and not self._reports and not self._last_words:
            self._stop()
        return _LOOK_EVERY

    # --- one worker process -------------------------------------------------------------------------------------

    def watch(self, pid: int) -> Charge:
        """From now on the end of this process is seen."""
        charge = self._charges.get(pid)
        if charge is None:
            charge = self._charges[pid] = Charge(pid)
            asyncio.get_running_loop().add_reader(charge.handle, self._ended, charge)
        return charge

    def _look_at(self, charge: Charge, now: float) -> None:
        stopped = charge.stopped_for(now)
        if stopped >= charge.stall and charge.renewable:
            self._declare(charge, Evidence.STALL)
        elif charge.declared and stopped == 0.0:
            self._pass_on(charge, now, BeatAnswer(known=False))
        if charge.board is None or stopped or charge.killed:
            return
        glance = charge.board.glance()
        if glance.blocked(now, _BLOCKED_PATIENCE):
            _log.error("killing worker %s (process %d): run %s blocks it", charge.worker, charge.pid, glance.culprit)
            charge.kill(glance.culprit)

    def _declare(self, charge: Charge, evidence: Evidence) -> None:
        assert charge.worker is not None
        charge.declared = True
        self._reports.append(Report(charge.worker, evidence, charge.culprit))
        self._report_loop.wake()

    def _ended(self, charge: Charge) -> None:
        asyncio.get_running_loop().remove_reader(charge.handle)
        self._charges.pop(charge.pid, None)
        task = asyncio.create_task(self._tell_end(charge))
        self._last_words.add(task)
        task.add_done_callback(self._last_words.discard)

    async def _tell_end(self, charge: Charge) -> None:
        """The last thing it wrote says what its end stands for, and may be read after the end is seen."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await charge.heard_out.wait()
        if charge.renewable:
            self._declare(charge, charge.evidence)
        charge.close()

    def _pass_on(self, charge: Charge, sent: float, answer: BeatAnswer) -> None:
        if not answer.known:
            charge.declared = True
        if charge.worker is not None:
            charge.tell(acknowledgement(charge.worker, sent, answer))

    # --- the door -----------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # it ended before a handle on it could be taken: it was never ours
            charge = self.watch(_peer_of(writer))
            charge.heard_out.clear()
            try:
                await self._hear(charge, reader, writer)
            finally:
                charge.heard_out.set()
        writer.close()

    async def _hear(self, charge: Charge, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, KeyError, AssertionError):  # a letter that makes no sense ends the talk
            while line := await reader.readline():
                letter = read_line(line)
                if "worker" in letter:
                    charge.greet(letter, writer)
                    self._renew_loop.wake()
                else:
                    charge.hear(letter)

    def _known_store(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    async def _ready(self) -> Store:
        """The store, connected, with this keeper's own sign of life in it where it shows such signs."""
        store = self._known_store()
        if not self._opened:
            await store.open()
            self._opened = True
        if self._identity.int == 0 and store.capabilities.session_signs:
            identity = uuid7(await store.now(), self._clock.random_bytes(10))
            await store.hold_sign(identity)
            self._identity = identity
        return store

    def _stop(self) -> None:
        for loop in self._loops:
            loop.stop()


def _take_lock(path: Path) -> int | None:
    """One keeper a socket: whoever holds the lock beside it."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _peer_of(writer: asyncio.StreamWriter) -> int:
    connection = writer.get_extra_info("socket")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", credentials)
    return int(pid)


def _log_event(event: Event) -> None:
    match event:
        case StoreLost(where, why):
            _log.warning("the store does not answer %s: %s; trying again", where, why)
        case StoreBack(where, after):
            _log.info("the store answers %s again after %.1f s", where, after / 1e6)
        case StepFailed(where, why):
            _log.error("%s failed: %s", where, why)
        case _:
            pass
