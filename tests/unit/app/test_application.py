"""From a function to a stored job and back to its result, over the store in memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID, uuid4

import pytest

from mainspring import InvalidInput, Mainspring, NotFound, ResultTimeout, Retry, RunFailed
from mainspring.app.connections import Connections
from mainspring.core.errors import Conflict, KeyTaken, TooLarge
from mainspring.core.model import SECOND, Claimed, Ending, Evidence, WorkerInfo
from mainspring.core.states import Outcome, State
from mainspring.ports.store import Store
from mainspring.tasks.task import Task


@dataclass(frozen=True)
class Order:
    number: int
    due: datetime


@pytest.fixture
async def app() -> AsyncIterator[Mainspring]:
    made = Mainspring(store=f"memory://{uuid4()}")
    yield made
    await made.close()


async def store_of(app: Mainspring) -> Store:
    return (await app.connections.here()).store


async def begin(app: Mainspring, task: str) -> tuple[UUID, Claimed]:
    """A new worker claims one run of the task."""
    store = await store_of(app)
    worker = uuid4()
    registered = app.registry.get(task)
    assert registered is not None
    await store.register(WorkerInfo(worker, "here", 1, (), 1, "", 30 * SECOND), [registered.info()])
    return worker, (await store.claim(worker, tasks=[task], queues=None, count=1))[0]


async def carry_out(app: Mainspring, task: str, *, result: bytes = b"null", state: State = State.COMPLETED) -> UUID:
    """Claims one run of the task and ends it."""
    store = await store_of(app)
    worker, run = await begin(app, task)
    error = '{"type":"ValueError","message":"no","traceback":""}' if state is State.FAILED else None
    outcome = {State.COMPLETED: Outcome.COMPLETED, State.FAILED: Outcome.FAILED, State.CANCELLED: Outcome.CANCELLED}
    await store.finish(worker, [Ending(run.id, run.fence, state, outcome[state], result=result, error=error)])
    return run.id


async def test_what_is_submitted_comes_back_as_its_type(app: Mainspring) -> None:
    @app.task
    async def later(order: Order) -> Order:
        return order

    job = await later.submit(Order(7, datetime(2026, 1, 1, tzinfo=UTC)))
    waiting = asyncio.create_task(job.result(timeout=10))
    await carry_out(app, "later", result=b'{"number":8,"due":"2026-01-02T00:00:00Z"}')

    assert await waiting == Order(8, datetime(2026, 1, 2, tzinfo=UTC))
    assert await job.status() == "completed"


async def test_a_plain_call_stays_a_plain_call(app: Mainspring) -> None:
    @app.task(queue="mail", timeout="30s", retry=Retry(max_attempts=5))
    async def twice(number: int) -> int:
        return number * 2

    @app.task
    def thrice(number: int) -> int:
        return number * 3

    assert await twice(2) == 4
    assert thrice(2) == 6


async def test_many_are_stored_in_order(app: Mainspring) -> None:
    @app.task
    def note(text: str) -> None: ...

    jobs = await note.submit_many([("a",), ("b",), ("c",)])

    views = await (await store_of(app)).jobs([UUID(job.id) for job in jobs])
    assert [view.job.payload for view in views if view] == [b'{"text":"a"}', b'{"text":"b"}', b'{"text":"c"}']


async def test_options_reach_the_job(app: Mainspring) -> None:
    @app.task(queue="mail")
    def send(to: str) -> None: ...

    job = await send.options(delay="5m", priority=80, key="o-7", tags=["x"]).submit("a@b.c")

    shown = await (await app.connections.here()).direct.get_job(job.id)
    assert (shown["kind"], shown["queue"], shown["priority"], shown["key"]) == ("delayed", "mail", 80, "o-7")
    with pytest.raises(KeyTaken):
        await send.options(key="o-7").submit("a@b.c")


async def test_a_failed_run_raises_what_happened(app: Mainspring) -> None:
    @app.task
    def fail() -> int:
        return 1

    job = await fail.submit()
    await carry_out(app, "fail", state=State.FAILED)

    with pytest.raises(RunFailed, match="ValueError: no") as caught:
        await job.result()
    assert caught.value.run_status == "failed"


async def test_a_run_that_was_lost_says_why(app: Mainspring) -> None:
    @app.task(on_lost="fail")
    async def charge() -> None: ...

    job = await charge.submit()
    worker, _ = await begin(app, "charge")
    store = await store_of(app)
    await store.declare_lost(worker, Evidence.DEATH)
    await store.rescue()
    with pytest.raises(RunFailed, match=r"WorkerLost: the worker's process died .*on_lost is `fail`"):
        await job.result(timeout=10)


async def test_waiting_has_an_end(app: Mainspring) -> None:
    @app.task
    def never() -> None: ...

    job = await never.submit()
    with pytest.raises(ResultTimeout, match=job.id):
        await job.result(timeout=0.01)


async def test_cancelled_before_it_ran(app: Mainspring) -> None:
    @app.task
    def never() -> None: ...

    job = await never.submit()
    await job.cancel()
    with pytest.raises(RunFailed) as caught:
        await job.result(timeout=5)
    assert caught.value.run_status == "cancelled"


async def test_a_recurring_job_has_no_one_result(app: Mainspring) -> None:
    @app.task
    def tick() -> None: ...

    job = await tick.options(every="1h").submit()
    await job.cancel()
    with pytest.raises(Conflict, match="recurring"):
        await job.result(timeout=5)


async def test_a_deleted_job_is_not_found(app: Mainspring) -> None:
    @app.task
    def tick() -> None: ...

    job = await tick.options(delay="1h").submit()
    await (await app.connections.here()).direct.delete_job(job.id)
    with pytest.raises(NotFound):
        await job.status()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": -1}, "/delay"),
        ({"delay": "soon"}, "/delay"),
        ({"at": "2026-01-01T00:00:00"}, "/at"),
        ({"at": datetime(2026, 1, 1)}, "/at"),
        ({"cron": "99 * * * *"}, "/cron"),
        ({"cron": "* * * * *", "timezone": "Mars/Olympus"}, "/timezone"),
        ({"at": "2026-01-01T00:00:00Z", "cron": "* * * * *"}, "/"),
        ({"priority": 101}, "/priority"),
        ({"prioritty": 1}, "/prioritty"),
        ({"timeout": timedelta(seconds=-1)}, "/timeout"),
    ],
)
async def test_wrong_options_name_the_field_and_store_nothing(
    app: Mainspring, options: dict[str, object], field: str
) -> None:
    @app.task
    def send(to: str) -> None: ...

    with pytest.raises(InvalidInput) as caught:
        await send.options(**options).submit("a")
    assert any(problem.pointer.startswith(field) for problem in caught.value.problems)
    assert (await (await store_of(app)).stats()).by_status == {}


async def test_wrong_arguments_are_refused_at_submit(app: Mainspring) -> None:
    @app.task
    def send(to: str, count: int) -> None: ...

    untyped = cast("Task[..., None, None]", send)
    with pytest.raises(InvalidInput, match="/payload"):
        await untyped.submit("a")
    with pytest.raises(InvalidInput, match="/payload"):
        await untyped.submit("a", "b")
    with pytest.raises(TooLarge):
        await send.submit("x" * 300_000, 1)


async def test_submit_sync_works_inside_a_running_loop(app: Mainspring) -> None:
    @app.task
    def note(text: str) -> str:
        return text

    job = note.submit_sync("here")
    assert job.status_sync() in ("queued", "held")
    await carry_out(app, "note", result=b'"there"')
    assert job.result_sync(timeout=5) == "there"


def test_sync_code_needs_no_loop() -> None:
    app = Mainspring(store=f"memory://{uuid4()}")

    @app.task
    def note(text: str) -> str:
        return text

    jobs = note.submit_many_sync([("a",), ("b",)])
    assert len({job.id for job in jobs}) == 2
    jobs[0].cancel_sync()
    with pytest.raises(RunFailed):
        jobs[0].result_sync(timeout=5)
    app.close()


def test_each_loop_has_its_own_connection() -> None:
    app = Mainspring(store=f"memory://{uuid4()}")

    @app.task
    def note(text: str) -> str:
        return text

    async def submit() -> str:
        return (await note.submit("x")).id

    assert asyncio.run(submit()) != asyncio.run(submit())
    app.close()


def test_a_forked_child_begins_anew() -> None:
    app = Mainspring(store=f"memory://{uuid4()}")

    @app.task
    def note(text: str) -> str:
        return text

    note.submit_sync("parent")
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        told = b"failed"
        try:
            told = note.submit_sync("child").id.encode()
        finally:
            os.write(writable, told)
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as reader:
        identity = reader.read()
    os.waitpid(child, 0)
    assert str(UUID(identity.decode())) == identity.decode()
    assert note.submit_sync("parent again").id
    app.close()


async def test_threads_of_a_worker_submit_through_its_loop(app: Mainspring) -> None:
    @app.task
    def note(text: str) -> str:
        return text

    connection = await app.connections.here()
    app.connections.lend(connection)
    job = await asyncio.to_thread(note.submit_sync, "from a thread")

    assert job.id
    assert not any(thread.name == "mainspring-background" for thread in threading.enumerate() if thread.is_alive())


async def test_after_close_the_next_submit_opens_anew(app: Mainspring) -> None:
    @app.task
    def note(text: str) -> str:
        return text

    await note.submit("a")
    before = await app.connections.here()
    await app.close()
    await note.submit("b")
    assert await app.connections.here() is not before


async def test_a_failed_opening_is_tried_again() -> None:
    urls = iter(["nonsense://", f"memory://{uuid4()}"])
    connections = Connections(lambda: Mainspring(store=next(urls)).settings)

    with pytest.raises(InvalidInput):
        await connections.here()
    await connections.here()
    await connections.close()


def test_unknown_settings_name_their_neighbour() -> None:
    with pytest.raises(InvalidInput, match="did you mean concurrency="):
        Mainspring(concurency=3)


def test_two_tasks_of_one_name_are_refused() -> None:
    app = Mainspring()

    @app.task
    def note() -> None: ...

    with pytest.raises(InvalidInput, match="two tasks are named 'note'"):
        app.task(name="note")(lambda: None)
