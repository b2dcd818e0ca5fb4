"""One open store with what submitting needs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from mainspring.app.result_watch import ResultWatch
from mainspring.app.stores import open_store, prepare_store
from mainspring.client.base import ClientSettings
from mainspring.client.direct import Direct
from mainspring.client.submission import Request, prepare
from mainspring.config import Settings
from mainspring.observe.events import Bus
from mainspring.ports.clock import SystemClock
from mainspring.ports.store import Store, Submitted
from mainspring.tasks.submitter import Order

R = TypeVar("R")


class Connection:
    """`lent` ones belong to a worker, who closes them."""

    def __init__(self, direct: Direct, *, lent: bool = False) -> None:
        self.direct = direct
        self.store = direct.store
        self.lent = lent
        self.results = ResultWatch(direct.store, direct.clock)
        self._unsubscribe = direct.bus.subscribe(self.results.listen)

    async def submit(self, orders: Sequence[Order[R]]) -> list[UUID]:
        """Stores the orders, all or none; nothing is stored if any of them is wrong."""
        requests = [
            Request({"task": order.task.name, **order.options}, payload=order.payload, defaults=order.task.document)
            for order in orders
        ]
        submitted = await self._submit_one(requests[0]) if len(requests) == 1 else await self.direct.submit(requests)
        return [each.id for each in submitted]

    async def close(self) -> None:
        self._unsubscribe()
        self.results.stop()
        await self.direct.close()

    async def _submit_one(self, request: Request) -> list[Submitted]:
        """Problems of a single job point into it, not into a list."""
        direct = self.direct
        now = await direct.now()
        calendars = await direct.calendars_for([request.document])
        job = prepare(request, direct.ids(now, 1)[0], now, namespace=direct.settings.namespace, calendars=calendars)
        return await direct.submit_prepared([job])


async def connected(settings: Settings) -> Connection:
    """Opens the store that the settings name. A SQLite file is made where it is missing; a database is not."""
    store = open_store(settings)
    try:
        await prepare_store(store, settings)
    except BaseException:
        await store.close()
        raise
    return Connection(direct_of(store, settings))


def direct_of(store: Store, settings: Settings, bus: Bus | None = None, *, strict_tasks: bool = False) -> Direct:
    """`strict_tasks` is for faces alone: a schedule that stands in code is stored before any worker has its task."""
    told = ClientSettings(misfire=settings.misfire, ready_limit=settings.ready_limit, strict_tasks=strict_tasks)
    return Direct(store, SystemClock(), bus or Bus(), told)
