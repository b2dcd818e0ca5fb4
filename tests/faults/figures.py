"""`python -m tests.faults.figures [NAME…]`: the figures of recovery with as many accidents as a quantile needs."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.faults.recovery import (
    Figure,
    kills_of_a_host,
    kills_of_a_worker,
    silences_of_a_host,
    stops_of_a_worker,
)
from tests.faults.stage import Stage, stage
from tests.support.servers import PostgresServer

Scenario = Callable[[Stage, int], Awaitable[Figure]]

# Name: the scenario, its accidents for one of `--accidents`, the lease (30s is what is shipped).
SCENARIOS: dict[str, tuple[Scenario, float, str]] = {
    "kill": (kills_of_a_worker, 1.0, "30s"),
    "host": (kills_of_a_host, 1.0, "30s"),
    "stop": (lambda on, count: stops_of_a_worker(on, count, promised=12.0), 0.25, "30s"),
    "silence": (lambda on, count: silences_of_a_host(on, count, promised=8.0), 0.25, "6s"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.figures", description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(SCENARIOS))
    parser.add_argument("--accidents", type=int, default=20)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append")
    chosen = parser.parse_args()
    asyncio.run(_measure(chosen.names or list(SCENARIOS), chosen.store or ["sqlite", "postgres"], chosen.accidents))


async def _measure(names: list[str], kinds: list[str], accidents: int) -> None:
    server = PostgresServer(15, own=True)
    server.start()
    try:
        for name in names:
            scenario, share, lease = SCENARIOS[name]
            for kind in kinds:
                with tempfile.TemporaryDirectory() as folder:
                    async with stage(kind, Path(folder), server=server, lease=lease) as on:
                        await on.start_workers("a", "b")
                        print(await scenario(on, max(1, round(accidents * share))), flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
