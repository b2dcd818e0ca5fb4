"""A program of its own on a SQLite store, for tests that need several: `python -m tests.contract.sqlite_program ROLE PATH …`.

It says what it has reached on standard output and waits on standard input where it is to wait.
"""

from __future__ import annotations

import asyncio
import os
import sys
from uuid import UUID

from mainspring.core.ids import uuid7
from mainspring.core.model import SECOND, Ending, Lane, NewJob, RunFilter, TaskInfo, Verdict, WorkerInfo
from mainspring.core.states import Outcome, State
from mainspring.ports.store import Hint, Topic
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.store import SqliteStore

LANE = Lane("default", "default", "task")


def say(word: str) -> None:
    print(word, flush=True)


async def migrate(path: str) -> None:
    say(",".join(await SqliteStore(path).migrations.up()))


async def submit(path: str, count: str) -> None:
    store = SqliteStore(path)
    await store.open()
    for _ in range(int(count)):
        await store.submit([NewJob(uuid7(await store.now(), os.urandom(10)), LANE)])
    await store.close()


async def work(path: str, total: str) -> None:
    """Until the store holds `total` completed runs; prints how many it completed itself."""
    store = SqliteStore(path)
    await store.open()
    worker = WorkerInfo(uuid7(await store.now(), os.urandom(10)), "here", os.getpid(), (), 10, "0", 30 * SECOND)
    await store.register(worker, [TaskInfo("task")])
    woken = asyncio.Event()
    store.subscribe(lambda _: woken.set())
    done = 0
    while await _completed(store) < int(total):
        woken.clear()
        claimed = await store.claim(worker.id, tasks=["task"], queues=None, count=7)
        endings = [Ending(run.id, run.fence, State.COMPLETED, Outcome.COMPLETED) for run in claimed]
        done += sum(verdict is Verdict.ACCEPTED for verdict in await store.finish(worker.id, endings))
        if not claimed and await _completed(store) < int(total):
            await woken.wait()
    await store.close()
    say(str(done))


async def _completed(store: SqliteStore) -> int:
    return len(await store.list_runs(RunFilter(status=("completed",)), limit=1000))


async def hold(path: str, identity: str) -> None:
    store = SqliteStore(path)
    await store.open()
    await store.hold_sign(UUID(identity))
    say("held")
    sys.stdin.readline()
    await store.close()
    say("released")


async def listen(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    heard: asyncio.Queue[Hint] = asyncio.Queue()
    store.subscribe(heard.put_nowait)
    say("listening")
    while (hint := await heard.get()).topic is not Topic.READY:
        continue
    say(hint.key)


async def half(path: str) -> None:
    """Stops in the middle of a transaction that has changed a run."""
    connection = File(path).open_writer()
    connection.execute("BEGIN IMMEDIATE")
    changed = connection.execute("UPDATE runs SET state = 1, fence = 99").rowcount
    say(f"changed {changed}")
    sys.stdin.readline()


async def refused(path: str) -> None:
    """As a user who may read the file but not write it."""
    store = SqliteStore(path)
    await asyncio.to_thread(os.getpid)  # what is imported late is imported now, while it may be read
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        await store.open()
        await store.submit([NewJob(uuid7(await store.now(), os.urandom(10)), LANE)])
    except Exception as error:  # noqa: BLE001 - its kind and its words are what the test wants to know
        say(f"{type(error).__name__}: {error}")


def main() -> None:
    roles = {role.__name__: role for role in (migrate, submit, work, hold, listen, half, refused)}
    asyncio.run(roles[sys.argv[1]](*sys.argv[2:]))


if __name__ == "__main__":
    main()
