"""Calls about queues, workers, schedulers and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from mainspring.client.reading import page_of, read_id
from mainspring.client.runs import Runs
from mainspring.client.views import Json, queue_json, stats_json, worker_json
from mainspring.core import fields
from mainspring.core.errors import NotFound
from mainspring.core.fields import Problems
from mainspring.core.model import SECOND
from mainspring.core.times import utc_text

SCHEDULER_SILENT_AFTER = 4 * SECOND
_QUEUE_LIMITS = ("concurrency", "rate")


class Places(Runs):
    """The group of calls about where runs wait and who carries them out."""

    async def list_queues(self, **paging: object) -> Json:
        queues = await self.store.queues(self.settings.namespace)
        return page_of([queue_json(queue) for queue in queues], "name", paging, "queues")

    async def pause_queue(self, name: str) -> Json:
        """After the answer nothing is taken from it."""
        return await self._set_paused(name, paused=True)

    async def resume_queue(self, name: str) -> Json:
        return await self._set_paused(name, paused=False)

    async def _set_paused(self, name: str, *, paused: bool) -> Json:
        queue = await self.store.pause_queue(
            fields.identifier(name, "/name"), paused=paused, namespace=self.settings.namespace
        )
        return queue_json(queue)

    async def set_queue(self, name: str, body: Mapping[str, object]) -> Json:
        """Sets the limits of a queue, once this server offers limits: until then it only takes them away."""
        given = fields.members(body, "", '{"concurrency": 10}')
        problems = Problems()
        fields.refuse_unknown([each for each in given if each not in _QUEUE_LIMITS], _QUEUE_LIMITS, "", problems)
        for limit in _QUEUE_LIMITS:
            if given.get(limit) is not None:
                problems.add(
                    f"/{limit}", "this server does not offer limits yet; leave it out or say null to have none"
                )
        problems.raise_if_any()
        queue = await self.store.set_queue_limits(fields.identifier(name, "/name"), None, self.settings.namespace)
        return queue_json(queue)

    async def purge_queue(self, name: str) -> Json:
        """Cancels everything that waits in it."""
        purged = await self.store.purge_queue(fields.identifier(name, "/name"), self.settings.namespace)
        return {"name": name, "purged": purged}

    async def list_workers(self, **paging: object) -> Json:
        workers = await self.store.workers()
        return page_of([worker_json(worker) for worker in workers], "id", paging, "workers")

    async def drain_worker(self, worker_id: str) -> Json:
        """The worker takes nothing new and stops when what it holds has ended."""
        identity: UUID = read_id(worker_id, "worker")
        known = await self.store.drain(identity)
        found = [worker for worker in await self.store.workers() if worker.id == identity]
        if not known or not found:
            raise NotFound(f"there is no worker {identity}")
        self.changed(identity, "drain")
        return worker_json(found[0])

    async def list_schedulers(self, **paging: object) -> Json:
        found = await self.store.schedulers(silent_after=SCHEDULER_SILENT_AFTER)
        items: list[Json] = [
            {"id": str(each), "host": host, "beat_at": utc_text(beat_at)} for each, host, beat_at in found
        ]
        return page_of(items, "id", paging, "schedulers")

    async def stats(self) -> Json:
        """Counts of what is live."""
        return stats_json(await self.store.stats(self.settings.namespace))

    async def ping(self) -> None:
        """Raises StoreUnavailable where the store does not answer."""
        await self.store.now()
