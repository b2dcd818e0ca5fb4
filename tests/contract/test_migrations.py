"""The schema: made once, by one of many, known by its checksums, refused where it does not fit."""

from __future__ import annotations

import asyncio

import pytest

from mainspring.core.errors import SchemaError
from mainspring.ports.store import Store
from tests.contract.conftest import Books, MakeStore
from tests.contract.helpers import T0, given_job, immediate_job, run_of


async def test_up_applies_everything_once(make_empty_store: MakeStore) -> None:
    store = make_empty_store()
    before = await store.migrations.status()
    assert not any(applied for _, applied in before)
    assert await store.migrations.up() == [name for name, _ in before]
    assert await store.migrations.up() == []
    assert await store.migrations.status() == [(name, True) for name, _ in before]
    await store.open()
    await store.close()


async def test_two_at_once_apply_each_step_once(make_empty_store: MakeStore) -> None:
    first, second = make_empty_store(), make_empty_store()
    names = [name for name, _ in await first.migrations.status()]
    applied = await asyncio.gather(first.migrations.up(), second.migrations.up())
    assert sorted(name for share in applied for name in share) == sorted(names)
    assert all(done for _, done in await first.migrations.status())
    await first.close()
    await second.close()


async def test_an_absent_schema_is_refused_with_the_next_step(make_empty_store: MakeStore) -> None:
    store = make_empty_store()
    if not await store.migrations.status():
        await store.open()
        await store.close()
        return
    with pytest.raises(SchemaError, match="migrate"):
        await store.open()
    await store.close()


async def test_what_was_stored_survives_another_up(make_store: MakeStore, store: Store) -> None:
    job_id = await given_job(store, immediate_job(task="strange"))
    another = make_store()
    assert await another.migrations.up() == []
    await another.close()
    assert (await run_of(store, job_id)).created_at == T0


async def test_the_script_names_every_step(make_empty_store: MakeStore) -> None:
    store = make_empty_store()
    script = store.migrations.sql()
    for name, _ in await store.migrations.status():
        assert name in script
    await store.close()


async def test_the_script_alone_makes_a_store_that_works(make_empty_store: MakeStore, books: Books | None) -> None:
    """What a person runs by hand is known to the program as applied."""
    store = make_empty_store()
    if books is not None:
        books.run(store.migrations.sql())
    assert all(applied for _, applied in await store.migrations.status())
    assert await store.migrations.up() == []
    await store.open()
    new = immediate_job(at=await store.now())
    await store.submit([new])
    assert (await run_of(store, new.id)).id == new.id
    await store.close()


async def test_a_tampered_step_is_refused_by_everything_that_looks(
    make_empty_store: MakeStore, books: Books | None
) -> None:
    store = make_empty_store()
    await store.migrations.up()
    if books is not None:
        books.run(books.checksum)
        for look in (store.open, store.migrations.status, store.migrations.up):
            with pytest.raises(SchemaError, match="checksum"):
                await look()
    await store.close()


async def test_a_schema_for_newer_programs_is_refused_with_the_next_step(
    make_empty_store: MakeStore, books: Books | None
) -> None:
    store = make_empty_store()
    await store.migrations.up()
    if books is not None:
        books.run(books.min_program)
        with pytest.raises(SchemaError, match="upgrade Mainspring"):
            await store.open()
    await store.close()
