"""Some seeds on every test run; the planted bugs; one seed, one trace."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTED, Plant, lease_counted_from_the_reply
from tests.simulation.run import run_seed

SEEDS_MAX = 200


@pytest.mark.parametrize("first", range(1, 41, 10))
@pytest.mark.timeout(300)
def test_seeds_are_clean_and_conclusive(first: int) -> None:
    outcomes = [run_seed(seed) for seed in range(first, first + 10)]
    assert [(one.seed, one.violations) for one in outcomes if one.violations] == []
    assert any(outcome.conclusive for outcome in outcomes)


def test_a_seed_gives_one_trace() -> None:
    assert run_seed(7).trace_hash == run_seed(7).trace_hash


def test_another_seed_gives_another_trace() -> None:
    assert run_seed(7).trace_hash != run_seed(8).trace_hash


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED.keys())
@pytest.mark.timeout(600)
def test_a_planted_bug_is_caught(plant: Plant) -> None:
    assert any(run_seed(seed, plant=plant).violations for seed in range(1, SEEDS_MAX + 1))


@pytest.mark.timeout(600)
def test_a_lease_trusted_too_long_is_caught() -> None:
    seeds = range(1, SEEDS_MAX + 1)
    assert any(run_seed(seed, settings_plant=lease_counted_from_the_reply).violations for seed in seeds)
