"""The workloads of time on both stores, small: what they print, that nothing is early or lost, that nothing is left behind."""

from __future__ import annotations

import pytest

from tests.e2e.test_bench import KEYS, assert_clean, bench


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> str:
    name = {"sqlite": "sqlite_url", "postgresql": "postgres18_url"}[request.param]
    return str(request.getfixturevalue(name))


def test_what_falls_due_is_held_against_the_store_s_time(store: str) -> None:
    result = bench("punctual", store, "--runs", "40", "--seconds", "2", "--stored", "100")
    assert result.keys() >= KEYS | {"skipped", "behind_ms"}
    assert (result["runs"], result["early"], result["lost"], result["duplicates"]) == (40, 0, 0, 0)
    settings = result["settings"]
    assert isinstance(settings, dict)
    assert (settings["stored"], settings["recurring_jobs"]) == (100, 10)
    assert_clean(store)


def test_a_herd_tells_its_first_and_last_start_by_priority(store: str) -> None:
    result = bench("herd", store, "--runs", "300")
    assert result.keys() >= KEYS | {"overtaken"}
    assert (result["runs"], result["early"], result["lost"], result["duplicates"]) == (300, 0, 0, 0)
    first, last, by_priority = result["first_ms"], result["last_ms"], result["by_priority"]
    assert isinstance(first, float)
    assert isinstance(last, float)
    assert isinstance(by_priority, dict)
    assert list(by_priority) == ["90", "50", "10"]
    assert 0 <= first == min(each["first_ms"] for each in by_priority.values())
    assert first <= last == max(each["last_ms"] for each in by_priority.values())
    assert_clean(store)


def test_a_backlog_compares_few_and_many_waiting(store: str) -> None:
    result = bench("backlog", store, "--runs", "1000")
    assert result.keys() >= KEYS
    claim, fire = result["claim"], result["fire"]
    assert isinstance(claim, dict)
    assert isinstance(fire, dict)
    assert min(claim["few_ms"], claim["many_ms"], fire["few_ms"], fire["many_ms"]) > 0
    assert result["ratio"] == max(claim["ratio"], fire["ratio"])
    assert_clean(store)
