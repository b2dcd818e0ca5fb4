from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from mainspring.core.liveness import Look, Memory, Rules, judge
from mainspring.core.model import Evidence, WorkerInfo

WORKER = UUID(int=1)
KEEPER = UUID(int=2)
BEATS = Rules(own_signs=False)
OWN_SIGNS = Rules(own_signs=True)


def worker(*, beat: int = 1, lease: float = 30.0, keeper: UUID | None = KEEPER, lost: bool = False) -> WorkerInfo:
    return WorkerInfo(
        WORKER, "host", 1, (), 1, "0", round(lease * 1_000_000), keeper=keeper, beat=beat, lost_at=1 if lost else None
    )


def look(*workers: WorkerInfo, absent: Iterable[UUID] = (), stopped: Iterable[UUID] = (), epoch: str = "one") -> Look:
    return Look(workers, frozenset(absent), frozenset(stopped), epoch)


def evidence(memory: Memory, seen: Look, now: float, rules: Rules = BEATS) -> list[Evidence]:
    return [accusation.evidence for accusation in judge(memory, seen, now, rules)]


def test_a_worker_that_beats_is_never_accused() -> None:
    memory = Memory()
    for second in range(200):
        assert evidence(memory, look(worker(beat=second // 3)), float(second)) == []


def test_silence_for_a_lease_is_evidence() -> None:
    memory = Memory()
    for second in range(30):
        assert evidence(memory, look(worker()), float(second)) == []
    assert evidence(memory, look(worker()), 30.0) == [Evidence.SILENCE]


def test_silence_carries_the_beat_that_a_later_one_refutes() -> None:
    memory = Memory()
    for second in range(30):
        judge(memory, look(worker(beat=7)), float(second), BEATS)
    assert [accusation.beat for accusation in judge(memory, look(worker(beat=7)), 30.0, BEATS)] == [7]


def test_an_outage_of_the_store_accuses_nobody() -> None:
    memory = Memory()
    for second in range(29):
        judge(memory, look(worker()), float(second), BEATS)
    memory.forget()
    assert evidence(memory, look(worker()), 60.0) == []
    for second in range(61, 90):
        assert evidence(memory, look(worker()), float(second)) == []


def test_a_watcher_that_slept_starts_counting_anew() -> None:
    memory = Memory()
    judge(memory, look(worker()), 0.0, BEATS)
    assert evidence(memory, look(worker()), 100.0) == []


def test_an_absent_keeper_counts_after_two_seconds_in_one_epoch() -> None:
    memory = Memory()
    assert evidence(memory, look(worker(), absent=[KEEPER]), 0.0) == []
    assert evidence(memory, look(worker(), absent=[KEEPER]), 1.9) == []
    assert evidence(memory, look(worker(), absent=[KEEPER]), 2.0) == [Evidence.HOST_DEATH]


def test_a_worker_that_beats_by_itself_outlives_its_keeper() -> None:
    memory = Memory()
    for tick in range(20):
        assert evidence(memory, look(worker(beat=tick), absent=[KEEPER]), tick / 2) == []
    assert evidence(memory, look(worker(beat=19), absent=[KEEPER]), 11.5) == [Evidence.HOST_DEATH]


def test_a_restart_of_the_server_voids_the_absence() -> None:
    memory = Memory()
    judge(memory, look(worker(), absent=[KEEPER]), 0.0, BEATS)
    assert evidence(memory, look(worker(), absent=[KEEPER], epoch="two"), 2.5) == []
    assert evidence(memory, look(worker(), absent=[KEEPER], epoch="two"), 4.5) == [Evidence.HOST_DEATH]


def test_a_keeper_that_comes_back_voids_the_absence() -> None:
    memory = Memory()
    judge(memory, look(worker(), absent=[KEEPER]), 0.0, BEATS)
    judge(memory, look(worker()), 1.0, BEATS)
    assert evidence(memory, look(worker(), absent=[KEEPER]), 2.5) == []


def test_an_own_sign_that_is_gone_is_death_once_the_keeper_had_a_moment_to_say_more() -> None:
    memory = Memory()
    assert evidence(memory, look(worker(), absent=[WORKER]), 0.0, OWN_SIGNS) == []
    assert evidence(memory, look(worker(), absent=[WORKER]), 0.5, OWN_SIGNS) == [Evidence.DEATH]


def test_own_signs_make_beats_meaningless() -> None:
    memory = Memory()
    for second in range(100):
        assert evidence(memory, look(worker()), float(second), OWN_SIGNS) == []


def test_a_stopped_process_loses_its_runs_after_a_third_of_the_lease() -> None:
    memory = Memory()
    for second in range(10):
        assert evidence(memory, look(worker(), stopped=[WORKER]), float(second), OWN_SIGNS) == []
    assert evidence(memory, look(worker(), stopped=[WORKER]), 10.0, OWN_SIGNS) == [Evidence.STALL]


def test_a_process_that_goes_on_is_not_stopped_any_more() -> None:
    memory = Memory()
    judge(memory, look(worker(), stopped=[WORKER]), 0.0, OWN_SIGNS)
    judge(memory, look(worker()), 4.0, OWN_SIGNS)
    judge(memory, look(worker(), stopped=[WORKER]), 8.0, OWN_SIGNS)
    assert evidence(memory, look(worker(), stopped=[WORKER]), 12.0, OWN_SIGNS) == []


def test_who_is_lost_already_is_not_accused_again() -> None:
    assert evidence(Memory(), look(worker(lost=True), absent=[WORKER]), 0.0, OWN_SIGNS) == []
