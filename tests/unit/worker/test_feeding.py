"""Claims follow the slots and what was measured; what cannot start soon is given back; nothing claimed is forgotten."""

from collections.abc import Sequence
from uuid import UUID

from mainspring.core.model import Claimed, Ending, Run
from mainspring.core.states import Outcome, State
from mainspring.observe import events
from mainspring.worker.completer import Completer
from mainspring.worker.executor import Executor
from mainspring.worker.feed import Feed
from mainspring.worker.outcome import Finished
from mainspring.worker.settings import WorkerSettings
from tests.unit.worker.harness import EPOCH, House, passing, virtually


async def long() -> None:
    await passing(60)


async def quick() -> None: ...


def claimed(number: int, *, deaths: int = 0) -> Claimed:
    return Claimed(
        UUID(int=number), 1, 1, 0, deaths, "quick", b"{}", None, EPOCH, EPOCH, UUID(int=number), "default", 50,
        False, None, 0, EPOCH,
    )  # fmt: skip


def test_long_handlers_are_claimed_for_free_slots_only() -> None:
    async def scenario() -> list[tuple[int, bool]]:
        async with House() as house:
            house.registry.add(long)
            await house.worker(WorkerSettings(slots=3))
            await house.submit("long", count=10)
            await passing(100)
            await house.until(lambda: len(house.store.sent) == 6)
            assert not any(ending.started is False for ending in house.store.sent)
            return [each for each in house.store.claims if each[0] > 3]

    assert virtually(scenario()) == []


def test_quick_handlers_are_prefetched_in_large_claims() -> None:
    async def scenario() -> int:
        async with House() as house:
            house.registry.add(quick)
            await house.worker()
            for run_id in await house.submit("quick", count=20):
                await house.ended(run_id)
            return max(count for count, _ in house.store.claims)

    assert virtually(scenario()) == WorkerSettings().claim_max


def test_a_single_slot_claims_a_few_runs_one_by_one_so_that_their_starts_show_their_order() -> None:
    async def scenario() -> list[int]:
        async with House() as house:
            house.registry.add(quick)
            await house.worker(WorkerSettings(slots=1))
            for run_id in await house.submit("quick", count=20):
                await house.ended(run_id)
            return [count for count, _ in house.store.claims if count > 1]

    assert virtually(scenario()) == []


def test_prefetched_runs_stuck_behind_long_handlers_are_given_back() -> None:
    async def scenario() -> tuple[int, float, list[Run]]:
        async with House() as house:
            house.registry.add(long)
            house.registry.add(quick)
            await house.worker(WorkerSettings(slots=2))
            for run_id in await house.submit("quick", count=40):
                await house.ended(run_id)
            ids = await house.submit("long", count=10)
            begun = house.clock.monotonic()
            await house.until(lambda: sum(not ending.started for ending in house.store.sent) == 8)
            passed = house.clock.monotonic() - begun
            await passing(10)
            returned = sum(not ending.started for ending in house.store.sent)
            return returned, passed, [await house.run(run_id) for run_id in ids]

    returned, passed, runs = virtually(scenario())
    assert returned == 8  # once, and not claimed ahead again
    assert passed < 0.2
    assert sorted((run.state.word, run.attempt, run.spent) for run in runs) == [
        *[("queued", 0, 0)] * 8,
        *[("running", 1, 0)] * 2,
    ]


def test_an_idle_worker_starts_a_run_when_the_hint_comes() -> None:
    async def scenario() -> float:
        async with House() as house:
            house.registry.add(quick)
            await house.worker()
            await passing(10.5)
            (run_id,) = await house.submit("quick")
            await house.ended(run_id)
            return house.clock.monotonic()

    assert virtually(scenario()) < 10.51


def test_an_idle_worker_with_trusted_hints_asks_once_a_second() -> None:
    async def scenario() -> int:
        async with House() as house:
            house.registry.add(quick)
            await house.worker()
            await passing(60)
            return len(house.store.claims)

    assert 55 <= virtually(scenario()) <= 65


def test_a_lost_hint_costs_a_second() -> None:
    async def scenario() -> float:
        async with House() as house:
            house.registry.add(quick)
            house.store.deliver = lambda listener, hint: None
            await house.worker()
            await passing(10.5)
            begun = house.clock.monotonic()
            await house.ended((await house.submit("quick"))[0])
            return house.clock.monotonic() - begun

    assert virtually(scenario()) <= 1.01


def test_hints_of_other_queues_wake_nobody() -> None:
    async def scenario() -> list[bool]:
        async with House() as house:
            feed, *_ = parts(house, WorkerSettings(queues=("mail",)))
            return [feed.hint("mail"), feed.hint("other"), feed.hint("")]

    assert virtually(scenario()) == [True, False, True]


def test_of_several_suspects_all_but_one_are_given_back() -> None:
    async def scenario() -> tuple[list[UUID], list[UUID]]:
        async with House() as house:
            feed, executor, completer = parts(house)
            feed._take([claimed(1, deaths=2), claimed(2), claimed(3, deaths=2), claimed(4, deaths=1)])
            return [each.id for each in executor.queue], [run_id for run_id, _ in completer.held()]

    kept, returned = virtually(scenario())
    assert kept == [UUID(int=1), UUID(int=2), UUID(int=4)]
    assert returned == [UUID(int=3)]


def test_no_suspect_is_claimed_while_one_is_held_or_its_end_is_not_recorded() -> None:
    async def scenario() -> list[bool]:
        async with House() as house:
            await house.as_worker(9, "quick")
            feed, executor, completer = parts(house)
            executor.start()
            await passing(0)
            await feed._claim(1)
            held = claimed(1, deaths=2)
            ending = Ending(held.id, 1, State.COMPLETED, Outcome.COMPLETED)
            completer.deliver(Finished(held, ending, 0.0, 0))
            await feed._claim(1)
            completer.drop_all()
            await feed._claim(1)
            await executor.close()
            return [suspects for _, suspects in house.store.claims]

    assert virtually(scenario()) == [True, False, True]


def test_runs_of_a_claim_whose_reply_was_lost_are_given_back() -> None:
    async def scenario() -> tuple[list[Run], list[bool]]:
        async with House() as house:
            house.registry.add(quick)
            await house.worker(WorkerSettings(slots=3))
            await passing(5)
            house.store.lose_reply_of = "claim"
            ids = await house.submit("quick", count=3)
            runs = [await house.ended(run_id, within=5) for run_id in ids]
            return runs, [ending.started for ending in house.store.sent]

    runs, started = virtually(scenario())
    assert [(run.state, run.attempt, run.fence) for run in runs] == [(State.COMPLETED, 1, 2)] * 3
    assert started == [False] * 3 + [True] * 3


def test_runs_that_are_held_are_not_given_back_by_the_reconciliation() -> None:
    async def scenario() -> int:
        async with House() as house:
            house.registry.add(long)
            await house.worker(WorkerSettings(slots=3))
            await house.submit("long", count=2)
            await passing(5)
            house.store.lose_reply_of = "claim"
            await house.submit("long")
            await passing(30)
            return sum(not ending.started for ending in house.store.sent)

    assert virtually(scenario()) == 1


def test_claims_stop_while_endings_pile_up() -> None:
    async def scenario() -> int:
        async with House() as house:
            feed, executor, completer = parts(house)
            executor.start()
            await passing(0)
            for number in range(10_001):
                completer.deliver(
                    Finished(claimed(number), Ending(UUID(int=number), 1, State.COMPLETED, Outcome.COMPLETED), 0.0, 0)
                )
            await feed.step(0.0)
            await executor.close()
            return len(house.store.claims)

    assert virtually(scenario()) == 0


def test_a_hint_during_a_claim_is_not_forgotten() -> None:
    async def scenario() -> list[float | None]:
        async with House() as house:
            await house.as_worker(9, "quick")
            feed, executor, _ = parts(house)
            executor.start()
            await passing(0)
            house.store.before_claim_answers = lambda: feed.hint("default")
            heard = await feed.step(0.0)
            house.store.before_claim_answers = lambda: False
            quiet = await feed.step(0.0)
            await executor.close()
            return [heard, quiet]

    assert virtually(scenario()) == [0.0, 1.0]


class TestCompleter:
    def test_a_batch_takes_all_that_waits(self) -> None:
        async def scenario() -> list[int]:
            async with House() as house:
                house.registry.add(quick)
                await house.worker()
                for run_id in await house.submit("quick", count=30):
                    await house.ended(run_id)
                return [len(event.runs) for event in house.heard(events.RunsEnded)]

        sizes = virtually(scenario())
        assert sum(sizes) == 30
        assert len(sizes) < 30

    def test_an_outage_keeps_every_ending_in_order(self) -> None:
        async def scenario() -> tuple[int, list[int]]:
            async with House() as house:
                worker, ids = await given_claimed(house, 3)
                _, _, completer = parts(house, worker=worker)
                house.store.down = True
                for each in ids:
                    completer.deliver(finished(each))
                outages = 0
                for _ in range(5):
                    try:
                        await completer.step(0.0)
                    except Exception:  # noqa: BLE001 - whatever it raises, nothing may be lost
                        outages += 1
                house.store.down = False
                await completer.step(0.0)
                return outages, [ids.index(each) for each in await order_of(house, ids)]

        assert virtually(scenario()) == (5, [0, 1, 2])

    def test_a_lost_reply_is_looked_up_and_counts_as_ours(self) -> None:
        async def scenario() -> tuple[int, int]:
            async with House() as house:
                worker, ids = await given_claimed(house, 1)
                _, _, completer = parts(house, worker=worker)
                house.store.lose_reply_of = "finish"
                completer.deliver(finished(ids[0]))
                await until_sent(completer)
                return len(house.heard(events.RunsEnded)), len(house.heard(events.RunsRefused))

        assert virtually(scenario()) == (1, 0)

    def test_a_stale_answer_is_told_and_not_sent_again(self) -> None:
        async def scenario() -> tuple[int, int, int]:
            async with House() as house:
                worker, ids = await given_claimed(house, 1)
                _, _, completer = parts(house, worker=worker)
                late = finished(ids[0])
                late.ending.fence = 0
                completer.deliver(late)
                await until_sent(completer)
                run = await house.run(ids[0].id)
                assert run.state is State.RUNNING
                return (
                    len(house.heard(events.RunsEnded)),
                    len(house.heard(events.RunsRefused)),
                    len(house.store.sent),
                )

        assert virtually(scenario()) == (0, 1, 1)

    def test_one_ending_that_no_store_takes_holds_up_no_other(self) -> None:
        async def scenario() -> tuple[list[State], int]:
            async with House() as house:
                worker, ids = await given_claimed(house, 3)
                _, _, completer = parts(house, worker=worker)
                house.store.poison = ids[1].id
                for each in ids:
                    completer.deliver(finished(each))
                await until_sent(completer)
                states = [(await house.run(each.id)).state for each in ids]
                return states, len(house.heard(events.StepFailed))

        states, told = virtually(scenario())
        assert states == [State.COMPLETED, State.RUNNING, State.COMPLETED]
        assert told == 1

    def test_a_batch_is_bounded_by_bytes(self) -> None:
        async def scenario() -> list[int]:
            async with House() as house:
                _, _, completer = parts(house)
                for number in range(40):
                    each = finished(claimed(number))
                    each.ending.result = b"x" * 250_000
                    completer.deliver(each)
                sizes = []
                while completer.pending:
                    sizes.append(len(completer._take()))
                return sizes

        assert virtually(scenario()) == [33, 7]

    def test_what_was_taken_away_is_not_sent(self) -> None:
        async def scenario() -> int:
            async with House() as house:
                _, _, completer = parts(house)
                completer.deliver(finished(claimed(1)))
                assert completer.drop_all() == 1
                await completer.step(0.0)
                return len(house.store.sent)

        assert virtually(scenario()) == 0


def parts(
    house: House, settings: WorkerSettings | None = None, *, worker: UUID | None = None
) -> tuple[Feed, Executor, Completer]:
    """A feed, an executor and a completer whose loops the test turns by hand."""
    if "quick" not in house.registry:
        house.registry.add(quick)
    around = house.surroundings(settings)
    around.worker = worker or around.worker
    completer = Completer(around, wake=lambda: None, on_flushed=lambda: None)
    executor = Executor(around, house.registry, sink=Silent(), deliver=completer.deliver, want_more=lambda: None)
    return Feed(around, executor, completer, tasks=("quick",)), executor, completer


class Silent:
    def log(self, *_: object) -> None: ...

    def gap(self, *_: object) -> None: ...

    def progress(self, *_: object) -> None: ...


async def given_claimed(house: House, count: int) -> tuple[UUID, list[Claimed]]:
    worker = await house.as_worker(5, "quick")
    await house.submit("quick", count=count)
    return worker, await house.store.claim(worker, tasks=["quick"], queues=None, count=count)


def finished(each: Claimed) -> Finished:
    return Finished(each, Ending(each.id, each.fence, State.COMPLETED, Outcome.COMPLETED), 0.0, EPOCH)


async def until_sent(completer: Completer) -> None:
    while completer.pending:
        try:
            await completer.step(0.0)
        except Exception:  # noqa: BLE001 - a planted outage; the next turn goes on
            await passing(0)


async def order_of(house: House, ids: Sequence[Claimed]) -> list[Claimed]:
    by_id = {each.id: each for each in ids}
    return [by_id[ending.id] for ending in house.store.sent]
