"""Signs of life: seen while their holder lives, free when it has closed, and told apart from the store's own doing."""

from __future__ import annotations

import asyncio
from uuid import UUID

from mainspring.ports.store import Sign, Store
from tests.contract.conftest import OpenStore
from tests.contract.helpers import new_id


async def wait_until_free(store: Store, identity: UUID) -> None:
    """A closed session's lock falls a moment after the answer."""
    async with asyncio.timeout(10):
        seen = await store.signs([identity])
        while seen.seen[identity] is not Sign.FREE:
            seen = await store.signs([identity])


async def test_a_sign_is_held_while_its_program_lives(store: Store, other: Store) -> None:
    mine, nobodys = new_id(), new_id()
    await store.hold_sign(mine)
    seen = (await other.signs([mine, nobodys])).seen
    assert seen == {mine: Sign.HELD, nobodys: Sign.FREE}


async def test_its_own_program_sees_it_too(store: Store) -> None:
    mine = new_id()
    await store.hold_sign(mine)
    assert (await store.signs([mine])).seen == {mine: Sign.HELD}


async def test_one_program_may_hold_several(store: Store, other: Store) -> None:
    mine = [new_id() for _ in range(3)]
    for identity in mine:
        await store.hold_sign(identity)
    assert set((await other.signs(mine)).seen.values()) == {Sign.HELD}


async def test_a_sign_is_free_once_its_program_has_closed(open_store: OpenStore, store: Store) -> None:
    dying = await open_store()
    identity = new_id()
    await dying.hold_sign(identity)
    assert (await store.signs([identity])).seen == {identity: Sign.HELD}
    await dying.close()
    await wait_until_free(store, identity)


async def test_the_epoch_stays_while_nothing_was_restarted(store: Store) -> None:
    first = await store.signs([new_id()])
    second = await store.signs([new_id()])
    assert first.epoch == second.epoch


async def test_nobody_asked_is_nobody_seen(store: Store) -> None:
    assert (await store.signs([])).seen == {}
