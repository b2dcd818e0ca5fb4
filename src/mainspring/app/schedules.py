"""Schedules that stand in code: stored under a key when a worker or scheduler starts.

Any number of processes may do so at once. What an operator did to a stored schedule (a pause, another cron) stays
until the code itself says something else than it said when it was stored: a fingerprint in the metadata tells.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mainspring.client.direct import Direct
from mainspring.core.errors import Conflict, InvalidInput, NotFound
from mainspring.core.submission import read_submission

FINGERPRINT = "mainspring.declared"
MODULE = "mainspring.module"
REMOVED = "removed"  # in the place of a fingerprint: the code declares the schedule no more
_JOB_ONLY = frozenset(
    {"calendar", "dialect", "dst", "end_at", "every_nth", "jitter", "key", "max_runs", "misfire", "overlap", "payload", "spread", "start_at",
     "timezone"}
)  # fmt: skip
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Declared:
    """A recurring job that a decorator asked for."""

    key: str
    document: dict[str, object]
    module: str = ""

    @property
    def fingerprint(self) -> str:
        text = json.dumps(self.document, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Declaration:
    """The fields of a schedule whose task has no name yet."""

    fields: dict[str, object]

    def of(self, task: str, defaults: Mapping[str, object], module: str = "") -> Declared:
        fields = {**defaults, **self.fields, "task": task}
        # A wrong schedule is told where it is written, not when a worker starts.
        read_submission(fields)
        return Declared(str(fields.pop("key", f"schedule:{task}")), fields, module)


def declare(schedule: Mapping[str, object], fields: Mapping[str, object]) -> tuple[dict[str, object], Declaration]:
    """Parts what a decorator was given into the task's options and the schedule's fields."""
    options = {name: value for name, value in fields.items() if name not in _JOB_ONLY}
    own = {name: value for name, value in fields.items() if name in _JOB_ONLY}
    if isinstance(own.get("misfire"), str):
        own["misfire"] = {"policy": own["misfire"]}
    return options, Declaration({**schedule, **own})


def refuse_duplicates(schedules: Sequence[Declared]) -> None:
    seen: set[str] = set()
    for schedule in schedules:
        if schedule.key in seen:
            raise InvalidInput.at("key", f"two schedules have the key {schedule.key!r}; give one of them key=")
        seen.add(schedule.key)


async def store_schedules(direct: Direct, schedules: Sequence[Declared]) -> list[str]:
    """Makes the store hold each schedule as the code says it; the keys of those that were new or changed."""
    return [schedule.key for schedule in schedules if await _store(direct, schedule)]


async def _store(direct: Direct, schedule: Declared) -> bool:
    document = {**schedule.document, "metadata": _metadata(schedule)}
    for _ in range(_TRIES):
        try:
            holder = await direct.store.find_key(schedule.key)
            if holder is None:
                await direct.create_job({**document, "key": schedule.key})
                return True
            held = marks_of(await direct.get_job(str(holder))).get(FINGERPRINT)
            if held == schedule.fingerprint:
                return False
            await direct.put_job_by_key(schedule.key, document)
            if held == REMOVED:
                await direct.resume_job(str(holder))
            return True
        except (Conflict, NotFound):
            # Another process does the same at this moment: look again at what it made.
            continue
    return False


def _metadata(schedule: Declared) -> dict[str, object]:
    given = schedule.document.get("metadata")
    named = {MODULE: schedule.module} if schedule.module else {}
    return {**(given if isinstance(given, Mapping) else {}), **named, FINGERPRINT: schedule.fingerprint}


def marks_of(job: Mapping[str, object]) -> Mapping[str, object]:
    """The metadata of a stored job."""
    metadata = job.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
