"""One open store with what submitting needs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from mainspring.app.result_watch import ResultWatch
from mainspring.app.stores import open_store, prepare_store
from mainspring.client.direct import Direct
from mainspring.client.identity import IdMaker
from mainspring.client.submission import Request, prepare, prepare_all
from mainspring.config import Settings
from mainspring.core.model import NewJob
from mainspring.observe.events import Bus
from mainspring.ports.clock import Clock, SystemClock
from mainspring.ports.store import Store
from mainspring.ports.store_time import StoreTime
from mainspring.tasks.submitter import Order

R = TypeVar("R")


class Connection:
    """`lent` ones belong to a worker, who closes them."""

    def __init__(self, store: Store, direct: Direct, clock: Clock, *, lent: bool = False) -> None:
        self.store = store
        self.direct = direct
        self.lent = lent
        self.results = ResultWatch(store, clock)
        self._time = StoreTime(store, clock)
        self._ids = IdMaker(clock)

    async def submit(self, orders: Sequence[Order[R]]) -> list[UUID]:
        """Stores the orders, all or none; nothing is stored if any of them is wrong."""
        if not orders:
            return []
        await self._time.refresh()
        return list(await self.direct.submit_prepared(self._prepared(orders)))

    async def close(self) -> None:
        self.results.stop()
        await self.direct.close()

    def _prepared(self, orders: Sequence[Order[R]]) -> list[NewJob]:
        now = self._time.now()
        ids = self._ids(now, len(orders))
        requests = [
            Request({"task": order.task.name, **order.options}, payload=order.payload, defaults=order.task.document)
            for order in orders
        ]
        if len(requests) == 1:
            return [prepare(requests[0], ids[0], now)]
        return prepare_all(requests, ids, now)


async def connected(settings: Settings) -> Connection:
    """Opens the store that the settings name. A SQLite file is made where it is missing; a database is not."""
    store = open_store(settings)
    try:
        await prepare_store(store, settings)
    except BaseException:
        await store.close()
        raise
    return Connection(store, direct_of(store, settings), SystemClock())


def direct_of(store: Store, settings: Settings, bus: Bus | None = None) -> Direct:
    return Direct(store, SystemClock(), bus or Bus(), settings)
