"""The calls of the API as requests: written once, for the client with an event loop and for the one without."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import quote

T = TypeVar("T")

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. `repeatable`: doing it twice comes to the same (a POST is made so by its Idempotency-Key)."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


class Calls(ABC, Generic[T]):
    """What can be asked; `_call` sends it and comes to the answer's JSON object."""

    @abstractmethod
    def _call(self, sent: Sent) -> T: ...

    def _get(self, path: str, query: Mapping[str, object] | None = None) -> T:
        return self._call(Sent("GET", path, query or {}))

    def _post(self, path: str, body: object = None) -> T:
        return self._call(Sent("POST", path, body=body))

    # --- jobs ----------------------------------------------------------------------------------------------------

    def create_job(self, document: Document, *, strict_tasks: bool = False, idempotency_key: str | None = None) -> T:
        """Submits a job; answers it."""
        return self._call(Sent("POST", "/v1/jobs", _strict(strict_tasks), document, _keyed(idempotency_key)))

    def create_jobs(
        self, documents: Sequence[object], *, strict_tasks: bool = False, idempotency_key: str | None = None
    ) -> T:
        """Submits up to 10,000 jobs, all or none; answers their ids in order."""
        sent = Sent("POST", "/v1/jobs:batch", _strict(strict_tasks), list(documents), _keyed(idempotency_key))
        return self._call(sent)

    def put_job_by_key(self, key: str, document: Document, *, if_match: str | None = None) -> T:
        """Creates the job of this key, or replaces its definition."""
        headers = {} if if_match is None else {"If-Match": if_match}
        path = f"/v1/jobs/by-key/{_part(key)}"
        return self._call(Sent("PUT", path, body=document, headers=headers, repeatable=if_match is None))

    def get_job(self, job_id: str) -> T:
        return self._get(_job(job_id))

    def list_jobs(self, **filters: object) -> T:
        """Newest first; the filters are those of the API, `limit` and `cursor` among them."""
        return self._get("/v1/jobs", filters)

    def patch_job(self, job_id: str, changes: Document, *, if_match: str | None = None) -> T:
        """Lays the changes over the job."""
        headers = {} if if_match is None else {"If-Match": if_match}
        return self._call(Sent("PATCH", _job(job_id), body=changes, headers=headers, repeatable=if_match is None))

    def delete_job(self, job_id: str, *, if_match: str | None = None) -> T:
        """Cancels the job and removes its definition."""
        headers = {} if if_match is None else {"If-Match": if_match}
        return self._call(Sent("DELETE", _job(job_id), headers=headers, repeatable=False))

    def pause_job(self, job_id: str) -> T:
        return self._post(f"{_job(job_id)}/pause")

    def resume_job(self, job_id: str, body: Document | None = None) -> T:
        """What fell due during the pause is skipped, unless `{"catch_up": "once"|"all"}` asks for it."""
        return self._post(f"{_job(job_id)}/resume", body)

    def trigger_job(self, job_id: str) -> T:
        """Runs it now, whatever the schedule; answers the run."""
        return self._post(f"{_job(job_id)}/trigger")

    def cancel_job(self, job_id: str) -> T:
        return self._post(f"{_job(job_id)}/cancel")

    def next_occurrences(self, job_id: str, count: int | str = 10) -> T:
        return self._get(f"{_job(job_id)}/next", {"count": count})

    def preview(self, document: Document) -> T:
        """The occurrences of a schedule that need not be stored."""
        return self._post("/v1/preview", document)

    def job_runs(self, job_id: str, **paging: object) -> T:
        return self._get(f"{_job(job_id)}/runs", paging)

    def skip_next(self, job_id: str) -> T:
        """The next occurrence is recorded as skipped; answers the job."""
        return self._post(f"{_job(job_id)}/skip-next")

    def job_versions(self, job_id: str) -> T:
        """Its definitions, newest first."""
        return self._get(f"{_job(job_id)}/versions")

    def backfill_job(self, job_id: str, body: Document) -> T:
        """Runs of past instants: `{"from", "to", "limit", "order", "overlap", "rerun", "dry_run"}`."""
        return self._post(f"{_job(job_id)}/backfill", body)

    def explain_job(self, job_id: str, at: str | None = None) -> T:
        """Why it does not run; with `at`, what became or becomes of that instant."""
        return self._get(f"{_job(job_id)}/explain", {"at": at})

    # --- runs ----------------------------------------------------------------------------------------------------

    def list_runs(self, **filters: object) -> T:
        return self._get("/v1/runs", filters)

    def get_run(self, run_id: str) -> T:
        return self._get(_run(run_id))

    def run_logs(self, run_id: str, after: int | str = 0, limit: int | str = 1000) -> T:
        return self._get(f"{_run(run_id)}/logs", {"cursor": after, "limit": limit, "follow": "false"})

    def explain_run(self, run_id: str) -> T:
        """Why it does not go on."""
        return self._get(f"{_run(run_id)}/explain")

    def cancel_run(self, run_id: str) -> T:
        return self._post(f"{_run(run_id)}/cancel")

    def retry_run(self, run_id: str, body: Document | None = None) -> T:
        return self._post(f"{_run(run_id)}/retry", body)

    def resolve_run(self, run_id: str, body: Document) -> T:
        return self._post(f"{_run(run_id)}/resolve", body)

    def list_dead_letters(self, **filters: object) -> T:
        return self._get("/v1/dead-letters", filters)

    def replay_dead_letter(self, run_id: str, body: Document | None = None) -> T:
        return self._post(f"/v1/dead-letters/{_part(run_id)}/replay", body)

    def discard_dead_letter(self, run_id: str) -> T:
        return self._post(f"/v1/dead-letters/{_part(run_id)}/discard")

    # --- places --------------------------------------------------------------------------------------------------

    def list_queues(self, **paging: object) -> T:
        return self._get("/v1/queues", paging)

    def pause_queue(self, name: str) -> T:
        return self._post(f"/v1/queues/{_part(name)}/pause")

    def resume_queue(self, name: str) -> T:
        return self._post(f"/v1/queues/{_part(name)}/resume")

    def set_queue(self, name: str, body: Document) -> T:
        return self._call(Sent("PUT", f"/v1/queues/{_part(name)}", body=body))

    def purge_queue(self, name: str) -> T:
        return self._post(f"/v1/queues/{_part(name)}/purge")

    def list_workers(self, **paging: object) -> T:
        return self._get("/v1/workers", paging)

    def drain_worker(self, worker_id: str) -> T:
        return self._post(f"/v1/workers/{_part(worker_id)}/drain")

    # --- calendars -----------------------------------------------------------------------------------------------

    def list_calendars(self, **paging: object) -> T:
        return self._get("/v1/calendars", paging)

    def get_calendar(self, name: str) -> T:
        return self._get(f"/v1/calendars/{_part(name)}")

    def put_calendar(self, name: str, document: Document, *, if_match: str | None = None) -> T:
        """Creates or replaces it, and plans anew what is to come of the jobs that use it."""
        headers = {} if if_match is None else {"If-Match": if_match}
        path = f"/v1/calendars/{_part(name)}"
        return self._call(Sent("PUT", path, body=document, headers=headers, repeatable=if_match is None))

    def delete_calendar(self, name: str, *, if_match: str | None = None) -> T:
        """Removes one that no job uses."""
        headers = {} if if_match is None else {"If-Match": if_match}
        return self._call(Sent("DELETE", f"/v1/calendars/{_part(name)}", headers=headers, repeatable=False))

    def list_schedulers(self, **paging: object) -> T:
        return self._get("/v1/schedulers", paging)

    def stats(self) -> T:
        return self._get("/v1/stats")


def logs_path(run_id: str) -> str:
    """Where the log of a run is tailed."""
    return f"{_run(run_id)}/logs"


def _part(text: str) -> str:
    return quote(str(text), safe="")


def _job(job_id: str) -> str:
    return f"/v1/jobs/{_part(job_id)}"


def _run(run_id: str) -> str:
    return f"/v1/runs/{_part(run_id)}"


def _strict(strict_tasks: bool) -> Document:  # noqa: FBT001 - private, named where it is called
    return {"strict_tasks": "true"} if strict_tasks else {}


def _keyed(key: str | None) -> Mapping[str, str]:
    return {} if key is None else {"Idempotency-Key": key}
