"""What the overview shows, read through the client."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from mainspring.client.direct import Direct
from mainspring.client.views import Json
from mainspring.core.times import read_instant, utc_text

_SHOWN = 15


async def overview(client: Direct) -> Mapping[str, object]:
    """Everything for the template, in a handful of bounded reads."""
    now = await client.now()
    stats = await client.stats()
    # One that has fired since it was listed may wait for nothing any more.
    jobs = [job for job in await client.soonest_jobs(_SHOWN) if job["next_run_at"] is not None]
    return {
        "now": utc_text(now),
        "stats": stats,
        "counts": sorted(cast("dict[str, int]", stats["by_status"]).items()),
        "schedulers": _items(await client.list_schedulers()),
        "workers": _items(await client.list_workers()),
        "queues": stats["queues"],
        "coming": [_coming(job, now) for job in jobs],
        "runs": [_run(run) for run in _items(await client.list_runs(limit=_SHOWN))],
    }


def _items(page: Json) -> list[Json]:
    return cast("list[Json]", page["items"])


def _coming(job: Json, now: int) -> Json:
    at = str(job["next_run_at"])
    rule = job["cron"] or (f"every {job['every']}" if job["every"] is not None else "once")
    return {
        "id": job["id"],
        "what": job["name"] or str(job["key"] or job["task"]).removeprefix("schedule:"),
        "task": job["task"],
        "rule": rule,
        "timezone": job["timezone"] if job["cron"] else "",
        "at": at,
        "within": _span((read_instant(at, "/next_run_at") - now) / 1_000_000),
    }


def _run(run: Json) -> Json:
    moment = str(run["finished_at"] or run["started_at"] or run["scheduled_at"])
    return {
        **run,
        "moment": moment,
        "clock": datetime.fromisoformat(moment).strftime("%H:%M:%S"),
        "lateness": "" if run["lateness_ms"] is None else _span(cast("float", run["lateness_ms"]) / 1000),
        "duration": "" if run["duration_ms"] is None else _span(cast("float", run["duration_ms"]) / 1000),
        "said": _said(run),
    }


def _said(run: Json) -> str:
    error = run["error"]
    if isinstance(error, Mapping) and run["status"] != "completed":
        return f"{error.get('type') or ''}: {error.get('message') or ''}"[:200].strip(": ")
    return str(run["reason"] or "")


def _span(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds <= 0:
        return "now"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
