"""The keeper: one renewal for all, evidence that cannot be mistaken, and what it has to tell it goes on telling."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from mainspring.core.model import SECOND, BeatAnswer, Claimed, Evidence
from mainspring.core.states import State
from mainspring.worker.board import SeenBoard, SharedBoard
from mainspring.worker.charge import Charge, stands_still
from mainspring.worker.keeper import Keeper
from mainspring.worker.keeper_link import KeeperLink
from mainspring.worker.letters import acknowledgement, read_acknowledgement, read_line
from mainspring.worker.slots import NEVER
from tests.unit.worker.harness import House, passing, virtually

TERMS = {"lease": 30 * SECOND, "beat": 3 * SECOND, "stall": 10 * SECOND}


class Paper:
    """Stands for the stream to a worker."""

    def __init__(self) -> None:
        self.written: list[tuple[UUID, float, BeatAnswer]] = []

    def write(self, line: bytes, /) -> None:
        self.written.append(read_acknowledgement(read_line(line)))

    def is_closing(self) -> bool:
        return False


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for ever."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    yield child
    child.kill()
    child.stdin.close()
    child.wait()


def greeted(keeper: Keeper, pid: int, worker: UUID, board: SharedBoard | None = None) -> tuple[Charge, Paper]:
    paper = Paper()
    charge = keeper.watch(pid)
    path = "/nowhere" if board is None else board.path
    letter: dict[str, object] = {"worker": str(worker), "board": path, **TERMS}
    charge.greet(letter, paper)
    return charge, paper


async def given_running(house: House, identity: int = 7) -> tuple[UUID, Claimed]:
    worker = await house.as_worker(identity, "quick")
    await house.submit("quick")
    (claimed,) = await house.store.claim(worker, tasks=["quick"], queues=None, count=1)
    return worker, claimed


async def told(keeper: Keeper) -> None:
    """Turns the reporting step until nothing is left to tell."""
    while keeper._reports or keeper._last_words:
        await keeper.step_report(0.0)
        await passing(0.001)


def test_letters_are_read_as_they_were_written() -> None:
    answer = BeatAnswer(known=True, drain=True, cancel=((UUID(int=3), 4),), now=5)
    assert read_acknowledgement(read_line(acknowledgement(UUID(int=1), 2.5, answer))) == (UUID(int=1), 2.5, answer)


def test_a_board_is_read_by_another_view_of_it() -> None:
    board = SharedBoard()
    seen = SeenBoard(board.path)
    assert not seen.glance().active
    board.beat(100.0, 105.0)
    board.begin(UUID(int=1).bytes, 1, 103.0, 100.1)
    assert seen.glance() == (True, 100.0, 103.0, UUID(int=1))
    board.blame(UUID(int=2).bytes, 1, 101.0)
    assert seen.glance().culprit == UUID(int=2)
    board.rest()
    assert not seen.glance().active
    seen.close()


@pytest.mark.parametrize(
    ("beat_at", "deadline", "now", "blocked"),
    [
        (100.0, 101.0, 103.0, True),
        (100.0, 110.0, 103.0, False),  # blocked, but nobody's time is over
        (102.5, 101.0, 103.0, False),  # past its time, but the loop turns: it will see to that itself
        (100.0, NEVER, 1e9, False),
    ],
)
def test_blocked_means_not_turning_and_past_a_timeout(
    beat_at: float, deadline: float, now: float, blocked: bool
) -> None:
    board = SharedBoard()
    board.beat(beat_at, deadline)
    assert board.glance().blocked(now, 1.0) is blocked


def test_one_call_renews_for_all_and_each_hears_what_is_asked_of_it(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            await house.store.cancel([claimed.id])
            _, paper = greeted(keeper, process.pid, worker)
            await passing(5)
            assert await keeper.step_renew(5.0) == 3.0
            ((named, sent, answer),) = paper.written
            assert (named, sent, answer.cancel) == (worker, 5.0, ((claimed.id, claimed.fence),))
            assert house.store.beats == 1
            (listed,) = await house.store.workers()
            assert listed.keeper == keeper._identity

    virtually(scenario())


def test_a_death_is_told_at_once_and_its_runs_are_free(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            greeted(keeper, process.pid, worker)
            process.kill()
            await house.until(lambda: bool(keeper._reports))
            await told(keeper)
            run = await house.run(claimed.id)
            assert (run.state, run.spent, run.deaths, run.reason) == (State.QUEUED, 1, 1, "death")

    virtually(scenario())


def test_the_end_of_a_drain_spends_nothing(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            charge, _ = greeted(keeper, process.pid, worker)
            charge.hear({"drain": True})
            process.kill()
            await house.until(lambda: bool(keeper._reports))
            await told(keeper)
            run = await house.run(claimed.id)
            assert (run.state, run.spent, run.deaths) == (State.QUEUED, 0, 0)

    virtually(scenario())


def test_who_said_goodbye_is_not_reported(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            charge, _ = greeted(keeper, process.pid, worker)
            charge.hear({"bye": True})
            process.kill()
            await house.until(lambda: not keeper._charges and not keeper._last_words)
            assert not keeper._reports
            assert (await house.run(claimed.id)).state is State.RUNNING

    virtually(scenario())


def test_what_was_written_last_is_read_before_the_end_is_told(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> Evidence:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, _ = await given_running(house)
            charge, _ = greeted(keeper, process.pid, worker)
            charge.heard_out.clear()
            process.kill()
            await house.until(lambda: not keeper._charges)
            assert not keeper._reports
            charge.hear({"drain": True})
            charge.heard_out.set()
            await house.until(lambda: bool(keeper._reports))
            return keeper._reports[0].evidence

    assert virtually(scenario()) is Evidence.DRAIN


def test_a_loop_blocked_past_a_timeout_is_killed_and_its_culprit_named(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, culprit = await given_running(house)
            await house.submit("quick")
            (bystander,) = await house.store.claim(worker, tasks=["quick"], queues=None, count=1)
            board = SharedBoard()
            board.beat(1.0, 3.0)
            board.begin(culprit.id.bytes, 1, 3.0, 1.1)
            greeted(keeper, process.pid, worker, board)
            await keeper.step_look(3.5)
            assert not keeper._reports
            await keeper.step_look(4.5)
            await house.until(lambda: bool(keeper._reports))
            await told(keeper)
            guilty, innocent = await house.run(culprit.id), await house.run(bystander.id)
            outcomes = [json.loads(run.attempts or "[]")[0]["outcome"] for run in (guilty, innocent)]
            assert outcomes == ["timed_out", "lost"]
            assert (guilty.deaths, innocent.deaths) == (0, 0)

    virtually(scenario())
    assert process.wait(5) == -signal.SIGKILL


def test_a_stopped_process_loses_its_runs_after_the_stall_limit(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            charge, paper = greeted(keeper, process.pid, worker)
            os.kill(process.pid, signal.SIGSTOP)
            await house.until(lambda: stands_still(charge.pid))
            for second in range(10):
                await keeper.step_look(float(second))
            assert not keeper._reports
            await keeper.step_look(10.0)
            await told(keeper)
            run = await house.run(claimed.id)
            assert (run.state, run.deaths, run.reason) == (State.QUEUED, 0, "stall")
            await keeper.step_renew(10.0)
            assert (house.store.beats, paper.written) == (0, [])
            os.kill(process.pid, signal.SIGCONT)
            await house.until(lambda: not stands_still(charge.pid))
            await keeper.step_look(11.0)
            assert [answer.known for _, _, answer in paper.written] == [False]

    virtually(scenario())


def test_a_keeper_that_was_stopped_itself_accuses_nobody(process: subprocess.Popen[bytes]) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, _ = await given_running(house)
            charge, _ = greeted(keeper, process.pid, worker)
            os.kill(process.pid, signal.SIGSTOP)
            await house.until(lambda: stands_still(charge.pid))
            await keeper.step_look(0.0)
            await keeper.step_look(60.0)
            assert not keeper._reports

    virtually(scenario())


def test_an_end_is_told_when_the_store_is_back(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, claimed = await given_running(house)
            running = asyncio.create_task(keeper.run(tmp_path / "keeper.sock"))
            await passing(0.1)
            greeted(keeper, process.pid, worker)
            house.store.down_for_reports = True
            process.kill()
            await house.until(lambda: bool(keeper._reports))
            await passing(30)
            assert keeper._reports
            house.store.down_for_reports = False
            await house.until(lambda: not keeper._reports, within=5)
            assert (await house.run(claimed.id)).state is State.QUEUED
            async with asyncio.timeout(20):
                await running  # and with nobody left it ends

    virtually(scenario())


def test_a_keeper_left_alone_gives_up_on_a_store_that_does_not_come_back(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    async def scenario() -> float:
        async with House() as house:
            keeper = Keeper(lambda: house.store, house.clock)
            worker, _ = await given_running(house)
            running = asyncio.create_task(keeper.run(tmp_path / "keeper.sock"))
            await passing(0.1)
            greeted(keeper, process.pid, worker)
            house.store.down_for_reports = True
            await passing(1)
            process.kill()
            await running
            return house.clock.monotonic()

    assert 600 < virtually(scenario()) < 620


class Kept:
    """A worker as its link sees it."""

    def __init__(self) -> None:
        self.answers: list[tuple[UUID, float, BeatAnswer]] = []
        self.keepers: list[int] = []
        self.losses = 0

    def acknowledged(self, worker: UUID, sent: float, answer: BeatAnswer) -> None:
        self.answers.append((worker, sent, answer))

    def kept(self, pid: int) -> None:
        self.keepers.append(pid)

    def unkept(self) -> None:
        self.losses += 1

    def current(self, task: object) -> tuple[UUID, int] | None:
        return None


def test_a_link_finds_its_keeper_and_hears_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with House() as house:
            worker = await house.as_worker(7, "quick")
            keeper = Keeper(lambda: house.store, house.clock, linger=1e9)
            path = tmp_path / "keeper.sock"
            running = asyncio.create_task(keeper.run(path))
            await house.until(path.exists)
            kept = Kept()
            link = KeeperLink(path, ["false"], environment={}, **TERMS)
            link.start(kept, worker)
            await house.until(lambda: bool(kept.answers))
            assert kept.keepers == [os.getpid()]
            assert kept.answers[0][0] == worker
            assert kept.answers[0][2].known
            link.drain()
            await house.until(lambda: keeper._charges[os.getpid()].draining)
            link.bye()
            link.close()
            await house.until(keeper._charges[os.getpid()].heard_out.is_set)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    virtually(scenario())


def test_a_link_tells_at_once_that_its_keeper_has_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with House() as house:
            path = tmp_path / "keeper.sock"
            gone = asyncio.Event()

            async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                gone.set()
                writer.close()

            kept = Kept()
            async with await asyncio.start_unix_server(hang_up, str(path)):
                link = KeeperLink(path, ["false"], environment={}, **TERMS)
                link.start(kept, UUID(int=1))
                await house.until(lambda: gone.is_set() and kept.losses > 0)
            link.close()

    virtually(scenario())


def test_a_link_without_keeper_starts_one_again_and_again(tmp_path: Path) -> None:
    started = tmp_path / "started"
    enough = threading.Event()

    async def scenario() -> None:
        async with House():
            link = KeeperLink(
                tmp_path / "none.sock", ["sh", "-c", f"echo >> {started}; exit 3"], environment={}, **TERMS
            )
            link.start(Kept(), UUID(int=1))
            while not started.exists() or len(started.read_text()) < 2:
                enough.wait(0.01)
            link.close()
            link._thread.join(5)

    virtually(scenario())
    assert len(started.read_text()) >= 2
