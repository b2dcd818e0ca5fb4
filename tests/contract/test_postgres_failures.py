"""A server that goes away and comes back, connections that break at the worst moment, pools and poolers."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import NoReturn
from uuid import uuid4

import asyncpg
import pytest

from mainspring.core.errors import StoreUnavailable, WorldError
from mainspring.core.ids import uuid7
from mainspring.core.model import Lane, NewJob
from mainspring.ports.store import Hint, Sign, Topic
from mainspring.stores.postgres import PostgresStore, pool
from mainspring.stores.postgres.store import is_pooled
from tests.contract.conftest import migrated
from tests.contract.helpers import TASK, given_worker
from tests.support.servers import PostgresServer

RECOVERY_TRIES = 200


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """One that may be stopped."""
    server = PostgresServer(15, fsync=False, own=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def url(own_server: PostgresServer) -> Iterator[str]:
    url = own_server.create_database()
    migrated(PostgresStore(url))
    yield url
    own_server.start()
    own_server.drop_database(url)


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def other(url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url)
    await store.open()
    yield store
    await store.close()


class TestServerGone:
    async def test_every_verb_says_so_in_time_and_works_again_afterwards(
        self, store: PostgresStore, own_server: PostgresServer
    ) -> None:
        worker = await given_worker(store)
        jobs = [job(await store.now())]
        await store.submit(jobs)
        own_server.halt("fast")
        for verb in (
            lambda: store.submit([job(uuid_time())]),
            lambda: store.claim(worker, tasks=[TASK], queues=None, count=1),
            lambda: store.beat([worker]),
            lambda: store.runs([jobs[0].id]),
            store.now,
        ):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await verb()
            assert time.monotonic() - began < 5
        own_server.start()
        await recovered(store)
        claimed = await store.claim(worker, tasks=[TASK], queues=None, count=1)
        assert [run.id for run in claimed] == [jobs[0].id]

    async def test_a_server_that_stands_still_is_given_up(
        self, store: PostgresStore, own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await store.stats()
        own_server.freeze()
        try:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await store.stats()
            assert time.monotonic() - began < 10
        finally:
            own_server.thaw()
        await recovered(store)

    async def test_signs_of_life_are_taken_again_in_another_epoch(
        self, store: PostgresStore, other: PostgresStore, own_server: PostgresServer
    ) -> None:
        identity = uuid4()
        await store.hold_sign(identity)
        before = await other.signs([identity])
        own_server.restart("fast")
        await recovered(other)
        after = await other.signs([identity])
        for _ in range(RECOVERY_TRIES):
            after = await other.signs([identity])
            if after.seen[identity] is Sign.HELD:
                break
            await recovered(store)
        assert before.seen == after.seen == {identity: Sign.HELD}
        assert before.epoch != after.epoch

    async def test_hints_come_again(
        self, store: PostgresStore, other: PostgresStore, own_server: PostgresServer
    ) -> None:
        own_server.restart("fast")
        await recovered(store)
        await recovered(other)
        heard = asyncio.Event()

        def hear(hint: Hint) -> None:
            if hint.topic is Topic.READY:
                heard.set()

        other.subscribe(hear)
        for _ in range(RECOVERY_TRIES):
            await store.submit([job(await store.now())])
            try:
                async with asyncio.timeout(0.1):
                    await heard.wait()
            except TimeoutError:
                continue
            break
        assert heard.is_set()


class TestBrokenCommit:
    @pytest.mark.parametrize("count", [1, 300])
    async def test_nobody_knows_whether_it_happened_until_it_is_sent_again(
        self, store: PostgresStore, url: str, count: int
    ) -> None:
        now = await store.now()
        await store.submit([job(now)])
        jobs = [job(now) for _ in range(count)]
        await execute(url, DIE_AT_COMMIT)
        with pytest.raises(StoreUnavailable) as caught:
            await store.submit(jobs)
        assert caught.value.unknown_outcome
        await execute(url, "DROP TRIGGER die ON mainspring.runs")
        submitted = await store.submit(jobs, repeat=True)
        assert [one.existed for one in submitted] == [False] * count
        submitted = await store.submit(jobs, repeat=True)
        assert [one.existed for one in submitted] == [True] * count

    async def test_a_claim_whose_answer_was_lost_is_given_back(
        self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        worker = await given_worker(store)
        jobs = [job(await store.now()) for _ in range(3)]
        await store.submit(jobs)
        (kept,) = await store.claim(worker, tasks=[TASK], queues=None, count=1)
        with monkeypatch.context() as patched:
            patched.setattr(store._pool, "statement", losing_the_answer(store))
            with pytest.raises(StoreUnavailable):
                await store.claim(worker, tasks=[TASK], queues=None, count=2)
        claimed = await store.claim(worker, tasks=[TASK], queues=None, count=5)
        assert {run.id for run in claimed} == {one.id for one in jobs} - {kept.id}
        assert {(run.fence, run.attempt) for run in claimed} == {(2, 1)}


class TestPool:
    async def test_an_exhausted_pool_accuses_nobody(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        store = PostgresStore(f"{url}?pool_size=1")
        await store.open()
        worker = await given_worker(store)
        monkeypatch.setattr(pool, "SECONDS_MAX", 0.05)
        async with store._pool.connection():
            with pytest.raises(StoreUnavailable, match="pool_size"):
                await store.stats()
            (answer,) = await store.beat([worker])
            assert answer.known
            assert await store.now() > 0
        await store.stats()
        await store.close()

    async def test_a_closed_store_says_so(self, url: str) -> None:
        store = PostgresStore(url)
        await store.open()
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.stats()

    async def test_a_cancelled_verb_leaves_the_pool_usable(self, url: str) -> None:
        store = PostgresStore(f"{url}?pool_size=1")
        await store.open()
        verb = asyncio.create_task(store.stats())
        await asyncio.sleep(0)
        verb.cancel()
        with pytest.raises(asyncio.CancelledError):
            await verb
        await store.stats()
        await store.close()


class TestPooler:
    async def test_behind_a_pooler_nothing_depends_on_a_session(self, url: str) -> None:
        store = PostgresStore(f"{url}?pooler=transaction")
        await store.open()
        assert not store.capabilities.hints
        assert not store.capabilities.session_signs
        worker = await given_worker(store)
        jobs = [job(await store.now()) for _ in range(3)]
        await store.submit(jobs)
        claimed = await store.claim(worker, tasks=[TASK], queues=None, count=5)
        assert {run.id for run in claimed} == {one.id for one in jobs}
        assert await execute(url, "SELECT count(*) FROM pg_prepared_statements") == "SELECT 1"
        await store.close()

    async def test_it_is_found_out_by_the_backend_that_answers(self, url: str) -> None:
        connection = await asyncpg.connect(url)
        assert not await is_pooled(connection)
        assert await is_pooled(Between(connection))
        await connection.close()


async def test_a_missing_driver_names_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(WorldError, match=r"pip install 'mainspring\[postgres\]'"):
        await PostgresStore("postgresql://localhost/none").open()


async def test_two_schemas_in_one_database_know_nothing_of_each_other(store: PostgresStore, url: str) -> None:
    second = PostgresStore(f"{url}?schema=second")
    await second.migrations.up()
    await second.open()
    now = await store.now()
    await store.submit([job(now)])
    assert (await second.stats()).by_status == {}
    await second.close()


DIE_AT_COMMIT = """
    CREATE OR REPLACE FUNCTION mainspring.die() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER die AFTER INSERT ON mainspring.runs DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION mainspring.die()
"""


class Between:
    """What a pooler looks like: the backend that the connection was told of is not the one that answers."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.fetchval = connection.fetchval
        self._pid = connection.get_server_pid()

    def get_server_pid(self) -> int:
        return int(self._pid) + 1


class LosesAnswer:
    def __init__(self, store: PostgresStore) -> None:
        self._statement = store._pool.statement

    async def __call__(self, sql: str, *arguments: object, writes: bool = False) -> NoReturn:
        await self._statement(sql, *arguments, writes=writes)
        raise StoreUnavailable("the answer was lost", unknown_outcome=True)


def losing_the_answer(store: PostgresStore) -> LosesAnswer:
    """The statement is carried out, and its answer never arrives."""
    return LosesAnswer(store)


def job(now: int) -> NewJob:
    return NewJob(uuid7(now, uuid4().bytes[:10]), Lane("default", "default", TASK))


def uuid_time() -> int:
    return time.time_ns() // 1000


async def recovered(store: PostgresStore) -> None:
    """Asks until there is an answer; the store itself waits between its tries."""
    for _ in range(RECOVERY_TRIES):
        try:
            await store.stats()
            await store.now()
        except StoreUnavailable:
            continue
        return
    raise AssertionError("the store did not recover")


async def execute(url: str, sql: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        return str(await connection.execute(sql))
    finally:
        await connection.close()
