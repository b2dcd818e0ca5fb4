"""Which jobs a list holds, where the store does not decide it by its own means."""

from __future__ import annotations

import json
from functools import lru_cache

from mainspring.core.model import Job, JobFilter, JobView, Kind
from mainspring.core.states import State


def job_fits(job: Job, where: JobFilter) -> bool:
    """Everything but the status, which is that of the newest run."""
    wanted = (
        (where.namespace, job.lane.namespace),
        (where.kind, job.kind),
        (where.task, job.lane.task),
        (where.queue, job.lane.queue),
        (where.region, job.lane.region),
        (where.key, job.key),
        (where.created_by, job.created_by),
    )
    return (
        all(wish is None or wish == value for wish, value in wanted)
        and (where.created_after is None or job.created_at >= where.created_after)
        and (where.created_before is None or job.created_at < where.created_before)
        and (where.next_before is None or (job.next_at is not None and job.next_at < where.next_before))
        and (where.tag is None or where.tag in tags_of(job.document))
        and (where.prefix is None or _begins(job, where.prefix))
        and all(_payload_text(job.payload, name) == text for name, text in where.payload)
    )


def view_fits(view: JobView, where: JobFilter) -> bool:
    """The status, and whether a completed one-time job is still of interest."""
    if where.status and view.status not in where.status:
        return False
    last = view.last_run
    one_time = view.job.kind is not Kind.RECURRING
    if where.ended_since is None or not one_time or last is None or last.state is not State.COMPLETED:
        return True
    return last.finished_at is None or last.finished_at >= where.ended_since


def tags_of(document: str | None) -> list[str]:
    tags = _fields(document).get("tags")
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _begins(job: Job, prefix: str) -> bool:
    name = _fields(job.document).get("name")
    texts = (name if isinstance(name, str) else "", job.key or "", job.lane.task)
    return any(text.startswith(prefix) for text in texts)


@lru_cache(maxsize=4096)
def _fields(document: str | None) -> dict[str, object]:
    return dict(json.loads(document)) if document else {}


def _payload_text(payload: bytes, name: str) -> str | None:
    """A field of the payload as text, as it is compared: texts as they are, everything else as JSON."""
    fields = json.loads(payload)
    value = fields.get(name) if isinstance(fields, dict) else None
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))
