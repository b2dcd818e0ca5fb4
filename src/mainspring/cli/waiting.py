"""Waiting for the end of a job's run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mainspring.cli.failures import FAILED
from mainspring.cli.output import note, print_item
from mainspring.core.errors import ResultTimeout, StoreUnavailable

if TYPE_CHECKING:
    from mainspring.app.clients import AnyClient

ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})
POLL_FIRST_SECONDS = 0.01
POLL_MAX_SECONDS = 0.25
TRIES_WHILE_AWAY = 20


async def finished_run(client: AnyClient, job_id: str, seconds: float | None) -> dict[str, object]:
    """The run of a one-time job once it has ended."""
    import asyncio

    try:
        async with asyncio.timeout(seconds):
            return await _until_ended(client, job_id)
    except TimeoutError:
        raise ResultTimeout(f"job {job_id} has not ended within {seconds:g} s; it goes on: job show {job_id}") from None


async def _until_ended(client: AnyClient, job_id: str) -> dict[str, object]:
    import asyncio

    wait, told, away = POLL_FIRST_SECONDS, "", 0
    while True:
        try:
            job = await client.get_job(job_id)
            away = 0
        except StoreUnavailable:
            away += 1
            if away > TRIES_WHILE_AWAY:
                raise
            await asyncio.sleep(POLL_MAX_SECONDS)
            continue
        status = str(job.get("status"))
        if status in ENDED:
            last = job.get("last_run")
            return await client.get_run(str(last["id"])) if isinstance(last, Mapping) else job
        if status == "unknown" and told != status:
            note(f"run {job_id} is unknown: nobody knows whether it took effect; it waits for resolve or cancel")
            told = status
        await asyncio.sleep(wait)
        wait = min(POLL_MAX_SECONDS, wait * 1.5)


def print_ended(run: dict[str, object], form: str) -> int:
    """Prints the run with its result or error; the exit code says whether it completed."""
    print_item(run, form)
    return 0 if run.get("status") == "completed" else FAILED
