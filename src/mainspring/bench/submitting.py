"""The producer's side, through the Python API that users have."""

from __future__ import annotations

import time

from mainspring import config
from mainspring.bench.tasks import app, nothing

BATCH = 5000


async def submit(store: str, runs: int, *, batch: int = BATCH) -> float:
    """Submits so many runs in batches; answers how many a second were stored."""
    app.adopt(config.load(flags={"store": store}))
    started = time.perf_counter()
    try:
        for begin in range(0, runs, batch):
            await nothing.submit_many([()] * min(batch, runs - begin))
    finally:
        await app.close()
    return round(runs / (time.perf_counter() - started), 1)
