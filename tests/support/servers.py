"""Real PostgreSQL servers for tests, faults and benches: on a free loopback port, in a folder of their own.

    server = PostgresServer(18)
    server.start()
    url = server.create_database()      # empty; `template=` clones a prepared one
    server.restart("immediate")
    server.stop()

A server named by MAINSPRING_TEST_POSTGRES15_URL or …18_URL is used as it is, never restarted or stopped;
`own=True` asks for one that may be. What is started here ends with this process, even when it is killed.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.support.binaries import find_binaries, url_setting
from tests.support.processes import (
    alive,
    free_port,
    open_to_all,
    processor_seconds,
    send_signal,
    temporary_root,
    unprivileged,
    wait_until,
)
from tests.support.reaper import server_pid

StopMode = Literal["smart", "fast", "immediate"]

STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}


class PostgresServer:
    """One server of one major version, started on demand."""

    def __init__(
        self, version: int, *, fsync: bool = True, own: bool = False, settings: dict[str, str] | None = None
    ) -> None:
        self.version = version
        self.port = 0
        self._given_url = None if own else os.environ.get(url_setting(version))
        self._settings = {"fsync": "on" if fsync else "off", "full_page_writes": "on" if fsync else "off"}
        self._settings |= settings or {}
        self._folder: Path | None = None
        self._binaries: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._reaper: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._templates: dict[str, str] = {}
        self._created: list[str] = []

    # -- life

    def start(self) -> str:
        """Starts it if it does not run; answers the URL of its database `postgres`."""
        if self._given_url is None and self._process is None:
            if self._folder is None:
                self._initialise()
            self._launch()
        return self.url()

    def stop(self) -> None:
        """Ends it and removes all that it stored; of a given server, the databases made here."""
        if self._given_url is not None:
            for name in self._created:
                self.drop_database(name)
            self._created.clear()
            return
        self._halt("immediate")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._reaper is not None:
            assert self._reaper.stdin is not None
            self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None

    def restart(self, mode: StopMode = "fast") -> None:
        """Stops it in this mode and starts it on the same port, with what it has stored."""
        self.halt(mode)
        self._launch()

    def halt(self, mode: StopMode = "fast") -> None:
        """Stops it; what it has stored stays, and `start` goes on from there."""
        self._assert_own()
        self._halt(mode)

    def kill(self) -> None:
        """SIGKILL to every process of it at once, as when a machine fails; `start` recovers it."""
        self._assert_own()
        family = self._family()
        for pid in family:
            send_signal(pid, signal.SIGKILL)
        self._await_end()
        wait_until(lambda: not any(alive(pid) for pid in family), "the killed server's processes are gone")

    def freeze(self) -> None:
        """Stops the clock of every process of it: connections stay open and nothing answers."""
        self._assert_own()
        for pid in self._family():
            send_signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._family():
            send_signal(pid, signal.SIGCONT)

    # -- databases

    def url(self, database: str = "postgres") -> str:
        if self._given_url is not None:
            return urlunsplit(urlsplit(self._given_url)._replace(path=f"/{database}"))
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str | None = None) -> str:
        """A database of its own: empty, or a clone of what `template` names; answers its URL."""
        name = f"mainspring_{os.getpid()}_{next(self._numbers)}"
        # Copying files is quicker than logging pages, unless the checkpoint that it takes must reach the disk.
        strategy = "file_copy" if self._settings["fsync"] == "off" else "wal_log"
        self.execute(f'create database "{name}" template "{template or "template0"}" strategy {strategy}')
        self._created.append(name)
        return self.url(name)

    def template(self, key: str, prepare: Callable[[str], None]) -> str:
        """The name of a database made once for this key; `prepare` is given its URL and leaves no connection behind."""
        if key not in self._templates:
            url = self.create_database()
            prepare(url)
            self._templates[key] = urlsplit(url).path[1:]
        return self._templates[key]

    def drop_database(self, name_or_url: str) -> None:
        """Removes it, whoever is still connected."""
        name = urlsplit(name_or_url).path.strip("/") if "://" in name_or_url else name_or_url
        self.execute(f'drop database if exists "{name}" with (force)')

    def execute(self, statement: str, database: str = "postgres") -> None:
        """One statement, outside of any transaction; works inside and outside of an event loop."""
        url = self.start() if database == "postgres" else self.url(database)
        _in_own_loop(lambda: asyncio.run(_execute(url, statement)))

    def processor_seconds(self) -> float:
        """What its processes that run now have used of the processor."""
        return sum(processor_seconds(pid) for pid in self._family())

    @property
    def log(self) -> str:
        """What the server wrote, for a failing test to show."""
        return "" if self._folder is None else (self._folder / "log").read_text(errors="replace")

    # -- processes

    def _initialise(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"mainspring-postgres{self.version}-", dir=temporary_root()))
        reaper = [sys.executable, str(Path(__file__).with_name("reaper.py")), str(self._folder)]
        self._reaper = subprocess.Popen(reaper, stdin=subprocess.PIPE, start_new_session=True)
        self._binaries = self._reachable(find_binaries(self.version))
        owner = unprivileged()
        if owner is not None:
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = self._spawn("initdb", *options, "-D", str(self._folder / "data"))
        if made.wait() != 0:
            raise RuntimeError(f"initdb of PostgreSQL {self.version} failed:\n{self.log}")

    def _reachable(self, binaries: Path) -> Path:
        """The server may not run as root; a checkout that only root may enter is copied to where `nobody` gets at it."""
        if unprivileged() is None or open_to_all(binaries):
            return binaries
        assert self._folder is not None
        copy = self._folder / "server"
        shutil.copytree(binaries.parent, copy, symlinks=True)
        return copy / "bin"

    def _launch(self) -> None:
        assert self._folder is not None
        self.port = self.port or free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "timezone": "UTC",
        } | self._settings
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = self._spawn("postgres", "-D", str(self._folder / "data"), *flags)
        wait_until(self._ready, f"PostgreSQL {self.version} takes connections", explain=lambda: self.log)

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._folder is not None
        assert self._binaries is not None
        owner = unprivileged()
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [str(self._binaries / program), *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"},
                user=owner.pw_uid if owner else None,
                group=owner.pw_gid if owner else None,
                extra_groups=[] if owner else None,
            )

    def _ready(self) -> bool:
        """The server itself says so, in the last line of its pid file."""
        assert self._folder is not None
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL {self.version} did not start:\n{self.log}")
        try:
            lines = (self._folder / "data/postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"

    def _halt(self, mode: StopMode) -> None:
        if self._process is not None:
            self.thaw()
            self._process.send_signal(STOP_SIGNALS[mode])
            self._await_end()

    def _await_end(self) -> None:
        if self._process is not None:
            self._process.wait(timeout=60)
            self._process = None

    def _family(self) -> list[int]:
        """The postmaster and its children."""
        pid = None if self._folder is None else server_pid(self._folder)
        if pid is None:
            return []
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def _assert_own(self) -> None:
        if self._given_url is not None:
            raise RuntimeError(f"the server named by {url_setting(self.version)} is not ours to stop; ask for own=True")


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _in_own_loop(action: Callable[[], None]) -> None:
    """Runs it on a thread, so that it may start an event loop where one runs already."""
    failure: list[BaseException] = []

    def attempt() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - handed on to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
