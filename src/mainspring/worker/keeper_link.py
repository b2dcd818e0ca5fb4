"""The worker's side of its keeper: a small thread that finds one, starts one, listens to it, and does so again.

It is a thread so that a blocked event loop does not keep a worker without a keeper, and so that somebody can say who
blocks it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from mainspring.core.model import Duration
from mainspring.worker.board import SharedBoard
from mainspring.worker.keeping import Kept
from mainspring.worker.letters import LINE_BYTES_MAX, line_of, read_acknowledgement, read_line
from mainspring.worker.slots import Board

_LOOK_EVERY = 0.25
_BLOCKED_AFTER = 0.5
_RETRY_FIRST = 0.05
_RETRY_LONGEST = 2.0
_START_PATIENCE = 10.0
_LOG_BYTES_MAX = 1024 * 1024
_START_GRACE = 0.5

_log = logging.getLogger("mainspring.worker")


class KeeperLink:
    """`command` starts a keeper that listens at `path` and logs beside it; it goes on living when the worker ends."""

    def __init__(
        self,
        path: Path,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        lease: Duration,
        beat: Duration,
        stall: Duration,
    ) -> None:
        self._path = path
        self._command = list(command)
        self._environment = dict(environment)
        self._terms = {"lease": lease, "beat": beat, "stall": stall}
        self._board = SharedBoard()
        self._connection: socket.socket | None = None
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._worker = UUID(int=0)
        self._draining = False
        self._left = False
        self._met = False
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, kept: Kept, worker: UUID) -> Board:
        self._worker = worker
        self._kept = kept
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._live, name="mainspring-keeper-link", daemon=True)
        self._thread.start()
        return self._board

    def announce(self, worker: UUID) -> None:
        self._worker = worker
        self._send(self._hello())

    def drain(self) -> None:
        self._draining = True
        self._send({"drain": True})

    def bye(self) -> None:
        self._left = True
        self._send({"bye": True})

    def close(self) -> None:
        self._closed.set()

    def _hello(self) -> dict[str, object]:
        return {
            "worker": str(self._worker),
            "board": self._board.path,
            "drain": self._draining,
            "bye": self._left,
            **self._terms,
        }

    def _send(self, letter: Mapping[str, object]) -> None:
        """What cannot be sent now is told again by the next greeting."""
        with self._sending:
            if self._connection is None:
                return
            try:
                self._connection.sendall(line_of(letter))
            except OSError:
                self._connection = None

    # --- the thread ---------------------------------------------------------------------------------------------

    def _live(self) -> None:
        wait = _RETRY_FIRST
        while not self._closed.is_set():
            try:
                self._serve_once()
                wait = _RETRY_FIRST
            except (OSError, ValueError, KeyError, AssertionError) as error:
                _log.warning("no keeper: %s; trying again in %.2f s", error, wait)
                self._closed.wait(wait)
                wait = min(_RETRY_LONGEST, wait * 2)
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(0.0 if self._met else _START_GRACE)

    def _serve_once(self) -> None:
        connection = self._connect() or self._start_keeper()
        if connection is None:
            return
        self._met = True
        with connection:
            with self._sending:
                self._connection = connection
                connection.sendall(line_of(self._hello()))
            self._post("kept", _peer_of(connection))
            try:
                self._listen(connection)
            finally:
                with self._sending:
                    self._connection = None
                self._post("unkept")

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(2.0)
            connection.connect(str(self._path))
        except (ConnectionError, FileNotFoundError, TimeoutError):
            connection.close()
            return None
        return connection

    def _start_keeper(self) -> socket.socket | None:
        if self._child is not None:
            self._child.poll()
        with self._path.with_suffix(".log").open("ab") as log:
            if log.tell() > _LOG_BYTES_MAX:
                log.truncate(0)
            self._child = subprocess.Popen(
                self._command,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # It outlives this process, and must not hold the pipes that somebody reads to their end.
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + _START_PATIENCE
        while time.monotonic() < until and not self._closed.wait(_RETRY_FIRST):
            connection = self._connect()
            if connection is not None:
                return connection
            if self._child.poll() not in (None, 0):  # 0: another one was quicker
                log_file = self._path.with_suffix(".log")
                raise OSError(f"the keeper ended with code {self._child.returncode}; {log_file} says why")
        if self._closed.is_set():
            return None
        raise OSError(f"the keeper did not answer at {self._path} within {_START_PATIENCE:.0f} s")

    def _listen(self, connection: socket.socket) -> None:
        """Until the keeper goes away."""
        buffer = b""
        while not self._closed.is_set():
            readable, _, _ = select.select([connection], [], [], _LOOK_EVERY)
            self._look_at_the_loop()
            if not readable:
                continue
            received = connection.recv(65536)
            if not received:
                return
            *lines, buffer = (buffer + received).split(b"\n")
            if len(buffer) > LINE_BYTES_MAX:
                raise ValueError("a keeper's letter has no end")
            for line in lines:
                self._post("acknowledged", *read_acknowledgement(read_line(line)))

    def _look_at_the_loop(self) -> None:
        now = time.monotonic()
        if self._board.blocked_for(now) > _BLOCKED_AFTER:
            culprit = self._kept.current(asyncio.current_task(self._loop))
            if culprit is not None:
                self._board.blame(culprit[0].bytes, culprit[1], now)

    def _post(self, what: str, *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(getattr(self._kept, what), *arguments)
        except RuntimeError:
            self._closed.set()  # the loop is closed: the worker has ended


def _peer_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, _, _ = struct.unpack("3i", credentials)
    return int(pid)
