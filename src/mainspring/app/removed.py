"""Schedules that an application declared once and declares no more: disabled, never deleted; and what a start changes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import NamedTuple

from mainspring.app.schedules import FINGERPRINT, MODULE, REMOVED, Declared, marks_of
from mainspring.client.direct import Direct
from mainspring.core.errors import CallerError, WorldError

_log = logging.getLogger("mainspring.schedules")
_LIVE = "active,paused"
_PAGES_MAX = 20
_SHOWN = ("cron", "dialect", "every", "rrule", "every_nth", "timezone", "dst", "calendar", "start_at", "end_at",
          "max_runs", "jitter", "spread", "misfire", "overlap", "queue", "priority", "payload", "timeout", "retry")  # fmt: skip


class Planned(NamedTuple):
    """What a start of the application would do about one schedule: create, update, keep, disable or enable."""

    key: str
    change: str
    job_id: str | None = None
    fields: tuple[str, ...] = ()


async def disable_removed(direct: Direct, schedules: Sequence[Declared], modules: Collection[str]) -> list[str]:
    """Pauses what these modules declared and declare no more; the keys. It never keeps a program from starting."""
    disabled: list[str] = []
    if not modules:
        return disabled
    try:
        async for job in _removed(direct, schedules, modules):
            if marks_of(job).get(FINGERPRINT) != REMOVED:
                await _disable(direct, job)
                disabled.append(str(job["key"]))
                _log.warning("schedule %s is declared no more and is paused", job["key"])
    except (CallerError, WorldError) as error:
        _log.warning("schedules that are declared no more could not be looked for: %s", error)
    return disabled


async def planned(direct: Direct, schedules: Sequence[Declared], modules: Collection[str]) -> list[Planned]:
    """What a start would change, without changing it."""
    found = [await _plan(direct, schedule) for schedule in schedules]
    async for job in _removed(direct, schedules, modules):
        change = "keep" if marks_of(job).get(FINGERPRINT) == REMOVED else "disable"
        found.append(Planned(str(job["key"]), change, str(job["id"])))
    return found


async def _plan(direct: Direct, schedule: Declared) -> Planned:
    holder = await direct.store.find_key(schedule.key)
    if holder is None:
        return Planned(schedule.key, "create")
    job = await direct.get_job(str(holder))
    held = marks_of(job).get(FINGERPRINT)
    if held == schedule.fingerprint:
        return Planned(schedule.key, "keep", str(holder))
    change = "enable" if held == REMOVED else "update"
    return Planned(schedule.key, change, str(holder), tuple(_differing(schedule.document, job)))


def _differing(declared: Mapping[str, object], job: Mapping[str, object]) -> list[str]:
    return [
        name for name in _SHOWN if name in declared and declared[name] != job.get(name) and _says(declared, job, name)
    ]


def _says(declared: Mapping[str, object], job: Mapping[str, object], name: str) -> bool:
    """A part of an object that agrees with the whole of it says nothing new."""
    given, held = declared[name], job.get(name)
    if isinstance(given, Mapping) and isinstance(held, Mapping):
        return any(held.get(part) != value for part, value in given.items())
    return True


async def _removed(
    direct: Direct, schedules: Sequence[Declared], modules: Collection[str]
) -> AsyncIterator[Mapping[str, object]]:
    declared = {schedule.key for schedule in schedules}
    cursor: object = None
    for _ in range(_PAGES_MAX):
        page = await direct.list_jobs(kind="recurring", status=_LIVE, limit=1000, cursor=cursor)
        items = page["items"]
        for job in items if isinstance(items, list) else []:
            if job["key"] not in declared and marks_of(job).get(MODULE) in modules:
                yield job
        cursor = page["next"]
        if cursor is None:
            return


async def _disable(direct: Direct, job: Mapping[str, object]) -> None:
    identity = str(job["id"])
    await direct.pause_job(identity)
    await direct.patch_job(identity, {"metadata": {**marks_of(job), FINGERPRINT: REMOVED}})
