from __future__ import annotations

from pathlib import Path

import pytest

from mainspring.bench import WORKLOADS, run
from mainspring.bench.place_postgres import PostgresPlace
from mainspring.bench.places import place_for
from mainspring.core.errors import InvalidInput


def test_an_unknown_workload_is_refused_with_those_there_are(sqlite_url: str) -> None:
    with pytest.raises(InvalidInput, match="flood, producer, pickup"):
        run("deluge", store=sqlite_url)
    assert list(WORKLOADS) == ["flood", "producer", "pickup", "punctual", "herd", "backlog"]


def test_a_schema_of_its_own_stands_in_the_url_and_the_rest_stays() -> None:
    place = PostgresPlace("postgresql://me@host/there?schema=mine&pool_size=3")
    assert place.schema.startswith("mainspring_bench_")
    assert place.url == f"postgresql://me@host/there?pool_size=3&schema={place.schema}"


async def test_a_file_of_its_own_lies_beside_the_one_named_and_vanishes(sqlite_url: str, tmp_path: Path) -> None:
    place = place_for(sqlite_url)
    await place.create()
    assert [name.startswith("mainspring-bench-") for name in names(tmp_path)] == [True]
    assert not await place.live()
    assert not await place.queued()
    assert (await place.tally()).ended == 0
    await place.remove()
    assert names(tmp_path) == []


async def test_the_floor_on_sqlite_ends_every_run(sqlite_url: str) -> None:
    place = place_for(sqlite_url)
    await place.create()
    try:
        floor = place.floor()
        await floor.open()
        made = await floor.drain(700, connections=1, batch=500)
        again = await floor.drain(10, connections=1, batch=500)
        await floor.close()
    finally:
        await place.remove()
    assert (made.runs, again.runs) == (700, 10)
    assert made.shown().keys() == {"connections", "batch", "per_second", "cpu_seconds_per_10k"}


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]
