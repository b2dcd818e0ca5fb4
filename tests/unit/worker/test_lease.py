"""An outage accuses nobody; a worker that cannot renew stops by itself, in time; one that was revoked begins anew."""

import asyncio
import json

import pytest

from mainspring.core.model import SECOND, BeatAnswer, Evidence, Run
from mainspring.core.states import State
from mainspring.observe import events
from mainspring.worker.settings import WorkerSettings
from tests.unit.worker.harness import House, passing, virtually

SHORT = WorkerSettings(slots=4, lease=10 * SECOND, beat=SECOND)


class Handlers:
    """Handlers that note what happens to them."""

    def __init__(self) -> None:
        self.stopped: list[float] = []
        self.finished = 0

    async def slow(self, seconds: float = 60) -> str:
        try:
            await passing(seconds)
        except asyncio.CancelledError:
            self.stopped.append(asyncio.get_running_loop().time())
            raise
        self.finished += 1
        return "done"


def test_an_outage_shorter_than_the_lease_ends_no_handler_and_loses_no_finish() -> None:
    handlers = Handlers()

    async def scenario() -> list[Run]:
        async with House() as house:
            house.registry.add(handlers.slow)
            await house.worker(SHORT)
            during = await house.submit("slow", payload={"seconds": 4})
            beyond = await house.submit("slow", payload={"seconds": 12})
            await passing(2.5)
            house.store.down = True
            await passing(8)
            house.store.down = False
            return [await house.ended(run_id) for run_id in (*during, *beyond)]

    runs = virtually(scenario())
    assert [(run.state, run.attempt) for run in runs] == [(State.COMPLETED, 1)] * 2
    assert (handlers.stopped, handlers.finished) == ([], 2)


def test_a_worker_cut_off_stops_its_handlers_before_the_lease_is_over() -> None:
    handlers = Handlers()

    async def scenario() -> tuple[Run, float]:
        async with House() as house:
            house.registry.add(handlers.slow)
            await house.worker(SHORT)
            (run_id,) = await house.submit("slow")
            await passing(3.2)
            last_sent = 3.0
            house.store.down = True
            await passing(20)
            assert len(handlers.stopped) == 1
            house.store.down = False

            async def given_up() -> bool:
                return (await house.run(run_id)).spent == 1

            await house.until(given_up, within=10)
            return await house.run(run_id), last_sent

    run, last_sent = virtually(scenario())
    assert last_sent + 8.5 < handlers.stopped[0] < last_sent + 9.5
    assert run.attempts is not None
    assert [each["outcome"] for each in json.loads(run.attempts)] == ["lost"]


def test_a_run_may_bear_a_longer_silence() -> None:
    handlers = Handlers()

    async def scenario() -> None:
        async with House() as house:
            house.registry.add(handlers.slow)
            await house.worker(SHORT)
            await house.submit("slow", payload={"seconds": 100}, lost_after="40s")
            await house.submit("slow", payload={"seconds": 100})
            await passing(1.5)
            house.store.down = True
            await passing(50)

    virtually(scenario())
    first, second = handlers.stopped
    assert 9 < first < 11
    assert 36 < second < 38.5


def test_the_keepers_acknowledgements_keep_the_lease_and_spare_the_beats() -> None:
    handlers = Handlers()

    async def scenario() -> int:
        async with House() as house:
            house.registry.add(handlers.slow)
            worker = await house.worker(SHORT, kept=True)
            await house.submit("slow", payload={"seconds": 60})
            beats = house.store.beats
            for _ in range(30):
                worker.acknowledged(worker.id, house.clock.monotonic(), BeatAnswer(known=True))
                await passing(1)
            assert handlers.stopped == []
            return house.store.beats - beats

    assert virtually(scenario()) <= 1


def test_without_word_from_its_keeper_a_worker_renews_by_itself() -> None:
    async def scenario() -> int:
        async with House() as house:
            house.registry.add(Handlers().slow)
            worker = await house.worker(SHORT, kept=True)
            worker.acknowledged(worker.id, house.clock.monotonic(), BeatAnswer(known=True))
            await passing(10)
            return house.store.beats

    assert virtually(scenario()) >= 7


def test_a_worker_whose_keeper_died_renews_often_until_another_one_does() -> None:
    async def scenario() -> tuple[int, int]:
        async with House() as house:
            house.registry.add(Handlers().slow)
            worker = await house.worker(SHORT, kept=True)
            worker.acknowledged(worker.id, house.clock.monotonic(), BeatAnswer(known=True))
            before = house.store.beats
            worker.unkept()
            await passing(1.6)
            alone = house.store.beats - before
            for _ in range(5):
                worker.acknowledged(worker.id, house.clock.monotonic(), BeatAnswer(known=True))
                await passing(1)
            return alone, house.store.beats - before - alone

    alone, kept = virtually(scenario())
    assert alone >= 4
    assert kept <= 1


def test_signs_of_the_operating_system_need_no_renewal_and_end_no_handler() -> None:
    handlers = Handlers()

    async def scenario() -> Run:
        async with House(process_signs=True) as house:
            house.registry.add(handlers.slow)
            await house.worker(SHORT)
            (run_id,) = await house.submit("slow", payload={"seconds": 60})
            await passing(1)
            house.store.down = True
            await passing(40)
            house.store.down = False
            return await house.ended(run_id)

    assert virtually(scenario()).state is State.COMPLETED
    assert handlers.stopped == []


@pytest.mark.parametrize("told_by", ["beat", "keeper"])
def test_a_revoked_worker_drops_everything_and_begins_anew(told_by: str) -> None:
    handlers = Handlers()

    async def scenario() -> None:
        async with House() as house:
            house.registry.add(handlers.slow)
            worker = await house.worker(SHORT, kept=True)
            (run_id,) = await house.submit("slow")
            await passing(0.5)
            before, sent = worker.id, len(house.store.sent)
            await house.store.declare_lost(before, Evidence.STALL)
            await house.store.rescue()
            if told_by == "keeper":
                worker.acknowledged(before, 0.0, BeatAnswer(known=False))
            await house.until(lambda: worker.id != before, within=5)
            await house.until(lambda: len(handlers.stopped) == 1)

            async def restarted() -> bool:
                run = await house.run(run_id)
                return run.state is State.RUNNING and run.worker == worker.id and run.fence == 2

            await house.until(restarted, within=5)
            assert len(house.store.sent) == sent  # nothing was said about what was taken away
            assert house.heard(events.WorkerRevoked)[0].successor == worker.id
            assert house.keeper.told.count("announce") == 2

    virtually(scenario())


def test_a_late_end_of_a_revoked_run_is_never_sent() -> None:
    async def scenario() -> int:
        async with House() as house:

            async def stubborn() -> str:
                try:
                    await passing(100)
                except asyncio.CancelledError:
                    await passing(30)
                return "too late"

            house.registry.add(stubborn)
            worker = await house.worker(SHORT)
            (run_id,) = await house.submit("stubborn", on_lost="fail")
            await passing(0.5)
            before = worker.id
            await house.store.declare_lost(before, Evidence.SILENCE)
            await house.store.rescue()
            await house.until(lambda: worker.id != before, within=5)
            await passing(60)
            assert (await house.run(run_id)).state is State.FAILED
            return len(house.store.sent)

    assert virtually(scenario()) == 0


def test_an_order_to_drain_is_obeyed_at_the_hint() -> None:
    async def scenario() -> tuple[int, float]:
        async with House() as house:
            house.registry.add(Handlers().slow)
            worker = await house.worker(SHORT)
            await passing(0.1)
            await house.store.drain(worker.id)
            return await house._tasks[0], house.clock.monotonic()

    code, at = virtually(scenario())
    assert code == 0
    assert at < 1


def test_the_store_being_away_at_the_start_is_waited_out() -> None:
    async def scenario() -> None:
        async with House() as house:
            house.registry.add(Handlers().slow)
            house.store.down = True
            starting = asyncio.create_task(house.worker(SHORT))
            await passing(30)
            assert not starting.done()
            house.store.down = False
            await starting
            assert len(house.heard(events.StoreLost)) == 1

    virtually(scenario())
