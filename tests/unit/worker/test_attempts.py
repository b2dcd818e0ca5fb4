"""One attempt from claim to record: outcomes, timeouts, cancels, and what is said meanwhile."""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from mainspring.core.errors import Cancel, Discard, RetryLater
from mainspring.core.model import LOG_BYTES_MAX, SECOND, Run
from mainspring.core.states import State
from mainspring.observe import events
from mainspring.tasks.context import RunContext, current_run
from mainspring.worker.settings import REPLACE, WorkerSettings
from tests.unit.worker.harness import House, passing, virtually

ONE_TRY: dict[str, object] = {"retry": {"max_attempts": 1}}


def outcomes(run: Run) -> list[str]:
    return [each["outcome"] for each in json.loads(run.attempts or "[]")]


def error_of(run: Run) -> dict[str, str]:
    error: dict[str, str] = json.loads(run.error or "{}")
    return error


@dataclass
class Point:
    x: int


def test_results_of_async_and_sync_handlers_are_recorded() -> None:
    async def slow(point: Point) -> Point:
        await passing(1)
        return Point(point.x + 1)

    def plain(point: Point) -> str:
        return f"{point.x} in {threading.current_thread().name[:10]} {current_run().attempt}"

    async def scenario() -> tuple[Run, Run]:
        async with House() as house:
            house.registry.add(slow)
            house.registry.add(plain)
            await house.worker()
            first, second = [(await house.submit(name, payload={"point": {"x": 1}}))[0] for name in ("slow", "plain")]
            return await house.ended(first), await house.ended(second)

    first, second = virtually(scenario())
    assert (first.state, first.result, first.attempts) == (State.COMPLETED, b'{"x":2}', None)
    assert second.result == b'"1 in mainspring 1"'


def test_a_failing_handler_is_tried_again_and_then_a_dead_letter() -> None:
    calls = []

    async def fail(**_: object) -> None:
        calls.append(current_run().attempt)
        raise ValueError(f"number {len(calls)}")

    async def scenario() -> Run:
        async with House() as house:
            house.registry.add(fail)
            await house.worker()
            (run_id,) = await house.submit("fail", retry={"max_attempts": 2, "initial": "5s"})
            await house.until(lambda: len(calls) == 1)

            async def retrying() -> bool:
                return (await house.run(run_id)).state is State.RETRYING

            await house.until(retrying)
            await house.store.retry_now(run_id)
            return await house.ended(run_id)

    run = virtually(scenario())
    assert calls == [1, 2]
    assert (run.state, run.spent, outcomes(run)) == (State.FAILED, 2, ["failed", "failed"])
    assert error_of(run)["message"] == "number 2"
    assert "raise ValueError" in error_of(run)["traceback"]
    assert "executor.py" not in error_of(run)["traceback"]


@pytest.mark.parametrize(
    ("wish", "state", "reason"),
    [
        (Discard("never again"), State.FAILED, "discarded"),
        (Cancel("not needed"), State.CANCELLED, None),
        (RetryLater("10m"), State.RETRYING, "retry_later"),
    ],
)
def test_wishes_are_granted(wish: Exception, state: State, reason: str | None) -> None:
    async def wishing() -> None:
        raise wish

    async def scenario() -> Run:
        async with House() as house:
            house.registry.add(wishing)
            await house.worker()
            (run_id,) = await house.submit("wishing")

            async def there() -> bool:
                return (await house.run(run_id)).state is state

            await house.until(there)
            return await house.run(run_id)

    run = virtually(scenario())
    assert run.reason == reason
    assert run.spent == (1 if state is State.FAILED else 0)


def test_a_payload_that_does_not_fit_fails_the_attempt_and_says_so() -> None:
    async def strict(number: int) -> None: ...

    run = virtually(_carried_out(strict, payload={"number": "x"}, document=ONE_TRY))
    assert run.state is State.FAILED
    assert "/payload/number" in error_of(run)["message"]


def test_a_large_result_fails_the_attempt_and_says_so() -> None:
    async def large() -> str:
        return "x" * 300_000

    run = virtually(_carried_out(large, document=ONE_TRY))
    assert "256 KiB" in error_of(run)["message"]


def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    run = virtually(_carried_out(odd, document=ONE_TRY))
    assert (run.state, error_of(run)["type"]) == (State.FAILED, "asyncio.exceptions.CancelledError")


def test_a_timeout_cancels_an_async_handler() -> None:
    cleaned = []

    async def slow() -> None:
        try:
            await passing(100)
        finally:
            cleaned.append(asyncio.get_running_loop().time())

    run = virtually(_carried_out(slow, document={"timeout": "5s", **ONE_TRY}))
    assert run.state is State.FAILED
    assert error_of(run)["message"] == "the attempt took longer than its timeout of 5s"
    assert 5 <= cleaned[0] < 5.1


def test_a_slot_goes_on_after_a_timeout() -> None:
    async def slow() -> None:
        await passing(100)

    async def quick() -> int:
        async with asyncio.timeout(1):
            await passing(0.5)
        return 1

    async def scenario() -> Run:
        async with House() as house:
            house.registry.add(slow)
            house.registry.add(quick)
            await house.worker(WorkerSettings(slots=1))
            (first,) = await house.submit("slow", timeout="1s", retry=1)
            await house.ended(first)
            return await house.ended((await house.submit("quick"))[0])

    assert virtually(scenario()).result == b"1"


def test_a_handler_that_will_not_stop_is_abandoned_and_its_late_end_is_not_sent() -> None:
    release: list[bool] = []

    async def stubborn() -> str:
        while not release:
            try:
                await passing(1)
            except asyncio.CancelledError:
                continue
        return "too late"

    async def quick() -> None: ...

    async def scenario() -> tuple[Run, int, float]:
        async with House() as house:
            house.registry.add(stubborn)
            house.registry.add(quick)
            await house.worker(WorkerSettings(slots=1))
            (first,) = await house.submit("stubborn", timeout="2s", cancel_grace="3s", retry=1)
            run = await house.ended(first)
            at = house.clock.monotonic()
            await house.ended((await house.submit("quick"))[0])  # the capacity is whole
            release.append(True)
            await passing(10)
            assert house.heard(events.RunsAbandoned)[0].why == "timeout"
            return run, sum(ending.id == first for ending in house.store.sent), at

    run, sent, at = virtually(scenario())
    assert error_of(run)["type"] == "TimeoutError"
    assert sent == 1
    assert 5 <= at < 5.5


def test_a_thread_past_its_timeout_is_reported_and_holds_its_slot_until_it_ends() -> None:
    async def scenario() -> tuple[Run, list[int], int]:
        entered, release = threading.Event(), threading.Event()

        def stuck() -> str:
            entered.set()
            release.wait(20)
            return "too late"

        async def quick() -> None: ...

        async with House() as house:
            house.registry.add(stuck)
            house.registry.add(quick)
            worker = await house.worker(WorkerSettings(slots=3))
            (first,) = await house.submit("stuck", timeout="2s", retry=1)
            run = await house.ended(first)
            assert run.started_at is not None
            assert run.finished_at is not None
            assert run.finished_at - run.started_at < 3.5 * SECOND
            lost = [worker._executor.lost_threads]
            await house.ended((await house.submit("quick"))[0])
            release.set()
            await house.until(lambda: worker._executor.lost_threads == 0)
            lost.append(worker._executor.lost_threads)
            return run, lost, sum(ending.id == first for ending in house.store.sent)

    run, lost, sent = virtually(scenario())
    assert (error_of(run)["type"], lost, sent) == ("TimeoutError", [1, 0], 1)


def test_half_the_slots_lost_to_threads_asks_for_another_process() -> None:
    async def scenario() -> tuple[int, bool, list[str]]:
        release = threading.Event()

        def stuck() -> None:
            release.wait(20)

        async with House() as house:
            house.registry.add(stuck)
            worker = await house.worker(WorkerSettings(slots=2), kept=True)
            await house.submit("stuck", timeout="1s", cancel_grace="0s", retry=1)
            code = await house._tasks[0]
            release.set()
            return code, worker.must_exit_hard, house.keeper.told

    code, hard, told = virtually(scenario())
    assert (code, hard) == (REPLACE, True)
    assert "bye" in told  # its runs have ended without the thread: nothing is left to tell
    assert "drain" not in told


def test_a_requested_cancel_reaches_a_running_handler_at_once() -> None:
    seen = []

    async def slow() -> None:
        run = current_run()
        try:
            await passing(100)
        except asyncio.CancelledError:
            seen.append(run.cancelled)
            raise

    async def scenario() -> tuple[Run, float]:
        async with House() as house:
            house.registry.add(slow)
            await house.worker()
            (run_id,) = await house.submit("slow")
            await passing(1)
            await house.store.cancel([run_id])
            return await house.ended(run_id), house.clock.monotonic()

    run, at = virtually(scenario())
    assert (run.state, seen) == (State.CANCELLED, [True])
    assert at < 1.2


def test_a_cancel_is_final_even_where_the_handler_completes() -> None:
    async def stubborn() -> str:
        try:
            await passing(100)
        except asyncio.CancelledError:
            return "done anyway"
        return "done"

    async def scenario() -> Run:
        async with House() as house:
            house.registry.add(stubborn)
            await house.worker()
            (run_id,) = await house.submit("stubborn")
            await passing(1)
            await house.store.cancel([run_id])
            return await house.ended(run_id)

    run = virtually(scenario())
    assert (run.state, run.result) == (State.CANCELLED, None)


def test_a_cancel_that_overtakes_a_completion_is_obeyed() -> None:
    async def quick() -> str:
        return "done"

    async def scenario() -> tuple[Run, int]:
        async with House() as house:
            house.registry.add(quick)
            house.store.deliver = lambda listener, hint: None
            await house.worker()
            (run_id,) = await house.submit("quick")
            house.store.cancel_before_finish = run_id
            return await house.ended(run_id), len(house.store.sent)

    run, sent = virtually(scenario())
    assert (run.state, run.result, sent) == (State.CANCELLED, None, 2)


def test_middleware_goes_round_each_attempt_outermost_first() -> None:
    order: list[str] = []

    def layer(name: str) -> Callable[..., Awaitable[object]]:
        async def around(run: RunContext, call_next: Callable[[RunContext], Awaitable[object]]) -> object:
            order.append(f"{name} before {run.task}")
            result = await call_next(run)
            order.append(f"{name} after {result}")
            return result

        return around

    async def scenario() -> Run:
        async with House() as house:
            house.registry.middleware += [layer("outer"), layer("inner")]
            house.registry.add(plain)
            await house.worker()
            return await house.ended((await house.submit("plain"))[0])

    def plain() -> int:
        return 7

    assert virtually(scenario()).result == b"7"
    assert order == ["outer before plain", "inner before plain", "inner after 7", "outer after 7"]


def test_what_is_logged_anywhere_in_a_handler_is_the_runs_log() -> None:
    def plain() -> None:
        current_run().log.info("own %s", "line", order=7)
        logging.getLogger("some.module").warning("theirs", extra={"item": "x"})
        logging.getLogger("some.module").debug("too fine")

    async def elsewhere() -> None:
        await asyncio.create_task(inner())

    async def inner() -> None:
        logging.getLogger("some.module").info("from a task of its own")

    async def scenario() -> tuple[list[tuple[str, str, object]], list[str]]:
        async with House() as house:
            house.registry.add(plain)
            house.registry.add(elsewhere)
            worker = await house.worker()
            first = await house.ended((await house.submit("plain"))[0])
            second = await house.ended((await house.submit("elsewhere"))[0])
            logging.getLogger("some.module").warning("outside")
            await house.stop(worker)
            lines = [line for _, line in await house.store.logs(first.id)]
            others = [line.message for _, line in await house.store.logs(second.id)]
            return [(line.level, line.message, json.loads(line.fields or "{}")) for line in lines], others

    lines, others = virtually(scenario())
    assert lines == [
        ("info", "own line", {"order": 7}),
        ("warning", "theirs", {"item": "x", "logger": "some.module"}),
    ]
    assert others == ["from a task of its own"]


def test_the_log_of_an_attempt_is_bounded_and_says_what_is_missing() -> None:
    async def chatty() -> None:
        for _ in range(40):
            current_run().log.info("x" * 50_000)

    async def scenario() -> list[str]:
        async with House() as house:
            house.registry.add(chatty)
            worker = await house.worker()
            run = await house.ended((await house.submit("chatty"))[0])
            await house.stop(worker)
            return [line.message for _, line in await house.store.logs(run.id)]

    lines = virtually(scenario())
    assert sum(map(len, lines)) <= LOG_BYTES_MAX
    assert lines[-1] == f"{40 - len(lines) + 1} more lines were dropped: 1 MiB is kept an attempt"


def test_progress_is_coalesced() -> None:
    async def busy() -> None:
        for step in range(100):
            current_run().progress(step / 100, f"step {step}")
        await passing(5)

    async def scenario() -> str | None:
        async with House() as house:
            house.registry.add(busy)
            await house.worker()
            (run_id,) = await house.submit("busy")
            await passing(1)
            return (await house.run(run_id)).progress

    assert json.loads(virtually(scenario()) or "{}") == {"value": 0.99, "message": "step 99"}


def test_a_handler_knows_its_deadline() -> None:
    async def asks() -> list[float]:
        run = current_run()
        assert run.deadline is not None
        return [(run.deadline - run.started_at).total_seconds(), run.lateness.total_seconds()]

    run = virtually(_carried_out(asks, document={"timeout": "5s"}))
    assert json.loads(run.result or b"") == [5.0, 0.0]


async def _carried_out(
    function: Callable[..., object], *, payload: object = None, document: dict[str, object] | None = None
) -> Run:
    async with House() as house:
        house.registry.add(function, name="it")
        await house.worker()
        return await house.ended(await house.submit_document("it", payload, document or {}))
