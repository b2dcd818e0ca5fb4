"""What every part of a worker stands in: the store, the clocks, who listens, and who this worker is."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from mainspring.observe.events import Bus
from mainspring.ports.clock import Clock
from mainspring.ports.store import Store
from mainspring.ports.store_time import StoreTime
from mainspring.worker.settings import WorkerSettings


@dataclass(slots=True)
class Surroundings:
    """`worker` changes when its runs were taken from it: it goes on under a new id."""

    store: Store
    clock: Clock
    bus: Bus
    settings: WorkerSettings
    store_time: StoreTime
    worker: UUID
