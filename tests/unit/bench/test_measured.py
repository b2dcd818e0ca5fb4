from __future__ import annotations

import pytest

from mainspring.bench.measured import Latency, Measured, Tally, Used, latency_of


def tally(*, ended: int = 10, distinct: int = 10, repeats: int = 0, early: int = 0) -> Tally:
    return Tally(ended, distinct, repeats, early, first_started_at=1_000_000, last_finished_at=3_000_000)


def measured(of: Tally, *, per_second: float | None = None, floor: float | None = None, p50: float = 1.0) -> Measured:
    used = {"python": 0.1, "store": None}
    return Measured(10, of, Latency(p50, p50, p50, p50), "a to b", used, per_second, floor)


def test_percentiles_are_values_that_were_measured() -> None:
    spans = [1000.0 * number for number in range(1, 101)]
    assert latency_of(spans) == Latency(50.0, 95.0, 99.0, 100.0)
    assert latency_of([7000.0]) == Latency(7.0, 7.0, 7.0, 7.0)


def test_a_tail_is_not_hidden_by_rounding_down() -> None:
    assert latency_of([1000.0] * 98 + [9000.0, 9000.0]).p99_ms == 9.0


def test_seconds_run_from_the_first_start_to_the_last_end() -> None:
    assert tally().seconds == 2.0


def test_an_end_too_many_and_an_attempt_too_many_are_both_duplicates() -> None:
    assert tally(ended=12, distinct=10, repeats=3).duplicates == 5


def test_what_did_not_end_is_lost() -> None:
    assert measured(tally(ended=9, distinct=8)).fields()["lost"] == 2


def test_the_ratio_is_that_of_the_rates_and_absent_without_a_floor() -> None:
    assert measured(tally(), per_second=60.0, floor=80.0).fields()["ratio"] == 0.75
    assert measured(tally(), per_second=60.0).fields()["ratio"] is None


def test_passes_are_ordered_by_ratio_and_else_by_latency() -> None:
    slow, fast = measured(tally(), p50=3.0), measured(tally(), p50=1.0)
    assert slow.standing < fast.standing
    behind = measured(tally(), per_second=40.0, floor=80.0)
    ahead = measured(tally(), per_second=30.0, floor=40.0)
    assert behind.standing < ahead.standing


@pytest.mark.parametrize(("store", "shown"), [(None, None), (3.0, 1.5)])
def test_cpu_is_told_per_ten_thousand_runs(store: float | None, shown: float | None) -> None:
    assert Used(1.0, store).per_10k(20_000) == {"python": 0.5, "store": shown}
