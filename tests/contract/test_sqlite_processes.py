"""Several programs on one file: real processes, killed, stopped, forked, all at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from mainspring.core.errors import StoreUnavailable
from mainspring.core.model import SECOND, RunFilter
from mainspring.core.states import State
from mainspring.ports.store import Sign, Topic
from mainspring.stores.sqlite.connection import File
from mainspring.stores.sqlite.driver import wal_is_safe
from mainspring.stores.sqlite.migrating import STEPS
from mainspring.stores.sqlite.store import SqliteStore
from tests.contract.helpers import TASK, claim, completed, given_job, given_worker, immediate_job, run_of

Start = Callable[..., subprocess.Popen[str]]

IDENTITY = UUID("01980000-0000-7000-8000-000000000001")


@pytest.fixture(params=["wal", "delete"])
def journal(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def path(tmp_path: Path, journal: str) -> Path:
    path = tmp_path / "many.db"
    await SqliteStore(path, journal=journal).migrations.up()
    return path


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts programs, and ends those that a test left running."""
    started: list[subprocess.Popen[str]] = []

    def begin(role: str, *arguments: str) -> subprocess.Popen[str]:
        process = python("-m", "tests.contract.sqlite_program", role, str(path), *arguments)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def python(*arguments: str, pass_fds: Sequence[int] = ()) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *arguments], stdin=pipe, stdout=pipe, text=True, pass_fds=pass_fds)


def word(process: subprocess.Popen[str]) -> str:
    """The next thing that the program says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_six_programs_lose_nothing_and_do_nothing_twice(store: SqliteStore, start: Start) -> None:
    total = 3 * 60
    programs = [start("submit", "60") for _ in range(3)]
    workers = [start("work", str(total)) for _ in range(3)]
    for program in programs:
        assert await asyncio.to_thread(program.wait) == 0
    done = [int(await asyncio.to_thread(word, worker)) for worker in workers]
    assert sum(done) == total
    ended = await store.list_runs(RunFilter(), limit=1000)
    assert len({run.id for run in ended}) == len(ended) == total
    assert {(run.state, run.fence, run.attempt) for run in ended} == {(State.COMPLETED, 1, 1)}


async def test_killed_in_a_transaction_leaves_no_trace(store: SqliteStore, start: Start) -> None:
    worker = await given_worker(store)
    job_id = await given_job(store, immediate_job())
    program = start("half")
    assert await asyncio.to_thread(word, program) == "changed 1"
    program.kill()
    await asyncio.to_thread(program.wait)
    assert (await run_of(store, job_id)).fence == 0
    [claimed] = await claim(store, worker)
    assert claimed.fence == 1


async def test_a_file_that_stays_locked_is_said_to_be_so(path: Path, start: Start) -> None:
    impatient = SqliteStore(path, busy_seconds=0.1)
    await impatient.open()
    job_id = await given_job(impatient, immediate_job())
    program = start("half")
    assert await asyncio.to_thread(word, program) == "changed 1"
    with pytest.raises(StoreUnavailable, match="was locked by another program for too long") as raised:
        await given_job(impatient, immediate_job())
    assert not raised.value.unknown_outcome
    program.kill()
    await asyncio.to_thread(program.wait)
    await given_job(impatient, immediate_job())
    assert (await run_of(impatient, job_id)).fence == 0
    await impatient.close()


async def test_programs_that_migrate_at_once_apply_each_step_once(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    programs = [python("-m", "tests.contract.sqlite_program", "migrate", str(path)) for _ in range(4)]
    said = [(await asyncio.to_thread(program.communicate))[0].strip() for program in programs]
    assert [program.returncode for program in programs] == [0] * 4
    assert list(filter(None, said)) == [",".join(step.name for step in STEPS)]
    assert all(applied for _, applied in await SqliteStore(path).migrations.status())


async def test_a_hint_reaches_another_process(store: SqliteStore, start: Start) -> None:
    await given_worker(store)
    program = start("listen")
    assert await asyncio.to_thread(word, program) == "listening"
    await given_job(store, immediate_job(queue="mail"))
    assert await asyncio.to_thread(word, program) == "mail"


class TestSigns:
    async def test_a_living_process_is_seen_and_its_end_too(self, store: SqliteStore, start: Start) -> None:
        program = start("hold", str(IDENTITY))
        assert await asyncio.to_thread(word, program) == "held"
        first = await store.signs([IDENTITY])
        assert first.seen == {IDENTITY: Sign.HELD}
        program.kill()
        await asyncio.to_thread(program.wait)
        second = await store.signs([IDENTITY])
        assert second.seen == {IDENTITY: Sign.FREE}
        assert second.epoch == first.epoch

    async def test_a_stopped_process_is_seen_as_stopped(self, store: SqliteStore, start: Start) -> None:
        program = start("hold", str(IDENTITY))
        assert await asyncio.to_thread(word, program) == "held"
        program.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
        assert (await store.signs([IDENTITY])).seen == {IDENTITY: Sign.STOPPED}
        program.send_signal(signal.SIGCONT)
        await asyncio.to_thread(os.waitid, os.P_PID, program.pid, os.WCONTINUED | os.WNOWAIT)
        assert (await store.signs([IDENTITY])).seen == {IDENTITY: Sign.HELD}

    async def test_an_orderly_end_takes_the_file_away(self, store: SqliteStore, start: Start, path: Path) -> None:
        program = start("hold", str(IDENTITY))
        assert await asyncio.to_thread(word, program) == "held"
        await asyncio.to_thread(program.communicate, "\n")
        assert (await store.signs([IDENTITY])).seen == {IDENTITY: Sign.FREE}
        assert list(path.with_name("many.db.locks").glob("*.sign")) == []

    async def test_what_the_dead_left_is_swept_up(self, store: SqliteStore, start: Start, path: Path) -> None:
        program = start("hold", str(IDENTITY))
        assert await asyncio.to_thread(word, program) == "held"
        await store.hold_sign(UUID(int=IDENTITY.int + 1))
        program.kill()
        await asyncio.to_thread(program.wait)
        await store.upkeep()
        left = [sign.stem for sign in path.with_name("many.db.locks").glob("*.sign")]
        assert left == [UUID(int=IDENTITY.int + 1).hex]

    async def test_looking_at_a_sign_of_ones_own_does_not_drop_it(self, path: Path, store: SqliteStore) -> None:
        await store.hold_sign(IDENTITY)
        await store.hold_sign(IDENTITY)
        neighbour = SqliteStore(path)  # the same process, another descriptor of the file
        for looker in (store, neighbour, neighbour):
            assert (await looker.signs([IDENTITY])).seen == {IDENTITY: Sign.HELD}

    async def test_a_child_made_by_fork_does_not_keep_its_parent_alive(self, path: Path, tmp_path: Path) -> None:
        """The parent holds a sign, forks, and dies; the child lives on, and nobody takes it for the parent."""
        script = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from uuid import UUID\n"
            "from mainspring.stores.sqlite.signs import SignFiles\n"
            "files = SignFiles(Path(sys.argv[1]))\n"
            "files.hold(UUID(sys.argv[2]))\n"
            "if os.fork() == 0:\n"
            "    print('child', flush=True)\n"
            "    sys.stdin.readline()\n"
            "    os._exit(0)\n"
            "os.read(int(sys.argv[3]), 1)\n"
        )
        readable, writable = os.pipe()
        locks = path.with_name("many.db.locks")
        program = python("-c", script, str(locks), str(IDENTITY), str(readable), pass_fds=(readable,))
        assert await asyncio.to_thread(word, program) == "child"
        store = SqliteStore(path)
        assert (await store.signs([IDENTITY])).seen == {IDENTITY: Sign.HELD}
        program.kill()
        await asyncio.to_thread(program.wait)
        assert (await store.signs([IDENTITY])).seen == {IDENTITY: Sign.FREE}
        await asyncio.to_thread(program.communicate, "\n")
        os.close(readable)
        os.close(writable)


async def test_a_child_made_by_fork_opens_its_own_connections(path: Path) -> None:
    """In a program of its own: forking the process of the tests would fork their threads' locks."""
    script = (
        "import asyncio, os, sys\n"
        "from mainspring.stores.sqlite.store import SqliteStore\n"
        "from tests.contract.helpers import immediate_job, given_job, new_id, run_of\n"
        "store = SqliteStore(sys.argv[1])\n"
        "async def once():\n"
        "    await store.open()\n"
        "    run = await run_of(store, await given_job(store, immediate_job()))\n"
        "    print(run.state.word, flush=True)\n"
        "async def again():\n"
        "    run = await run_of(store, await given_job(store, immediate_job(queue=str(os.getpid()))))\n"
        "    print(run.lane.queue == str(os.getpid()), flush=True)\n"
        "    await store.close()\n"
        "asyncio.run(once())\n"
        "child = os.fork()\n"
        "if child:\n"
        "    new_id()\n"
        "asyncio.run(again())\n"
        "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0)\n"
    )
    program = python("-c", script, str(path))
    said, _ = await asyncio.to_thread(program.communicate)
    assert said.split() == ["held", "True", "True"]
    assert program.returncode == 0


async def test_a_store_left_open_is_found_whole_by_the_next_one(path: Path, journal: str) -> None:
    """A verb that was answered is on the disk, whoever dies afterwards."""
    program = (
        "import asyncio, os, sys\n"
        "from mainspring.stores.sqlite.store import SqliteStore\n"
        "from tests.contract.helpers import immediate_job, given_job\n"
        "async def main():\n"
        "    store = SqliteStore(sys.argv[1])\n"
        "    await store.open()\n"
        "    print(await given_job(store, immediate_job()), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    killed = python("-c", program, str(path))
    said, _ = await asyncio.to_thread(killed.communicate)
    store = SqliteStore(path)
    await store.open()
    assert store.wal is (journal == "wal" and wal_is_safe())
    worker = await given_worker(store)
    [claimed] = await claim(store, worker)
    assert str(claimed.id) == said.strip()
    assert claimed.task == TASK
    await store.finish(worker, [completed(claimed)])
    await store.close()
    connection = File(path).open_reader()
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_beats_of_another_program_leave_this_one_at_rest(store: SqliteStore, path: Path) -> None:
    """An idle system looks abroad seldom; only what is there to be done makes it look often."""
    heard: dict[Topic, asyncio.Event] = {topic: asyncio.Event() for topic in Topic}
    store.subscribe(lambda hint: heard[hint.topic].set())
    other = SqliteStore(path)
    await other.open()
    assert store._engine is not None
    writer = store._engine._writer

    await other.scheduler_beat(IDENTITY, host="other", silent_after=SECOND)
    await heard[Topic.JOBS].wait()
    assert writer._busy_until == 0.0

    await given_worker(other)
    await given_job(other, immediate_job())
    await heard[Topic.READY].wait()
    assert writer._busy_until > 0.0
    await other.close()
