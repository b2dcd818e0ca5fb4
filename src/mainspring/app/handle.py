"""A submitted job, as its submitter holds it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from mainspring.core.errors import Conflict, NotFound, ResultTimeout, RunFailed
from mainspring.core.model import SECOND, JobView, Kind
from mainspring.core.states import State
from mainspring.core.times import read_duration
from mainspring.tasks.task import Task

if TYPE_CHECKING:
    from mainspring.app.connections import Connections

R_co = TypeVar("R_co", covariant=True)


class Handle(Generic[R_co]):
    """Works in whichever loop it is used; the methods that end in `_sync` need none."""

    def __init__(self, connections: Connections, identity: UUID, task: Task[..., object, R_co]) -> None:
        self.id = str(identity)
        self._identity = identity
        self._connections = connections
        self._task = task

    def __repr__(self) -> str:
        return f"<job {self.id} of {self._task.name}>"

    async def status(self) -> str:
        """The word of the API: queued, running, completed, …"""
        connection = await self._connections.here()
        view = (await connection.store.jobs([self._identity]))[0]
        return self._known(view).status

    async def result(self, timeout: float | str | None = None) -> R_co:
        """Waits for the end: the result, or RunFailed; ResultTimeout after `timeout` (seconds, or such as "5m")."""
        connection = await self._connections.here()
        seconds = None if timeout is None else read_duration(timeout, "/timeout") / SECOND
        try:
            async with asyncio.timeout(seconds):
                view = await connection.results.ended(self._identity)
        except TimeoutError:
            raise ResultTimeout(f"job {self.id} has not ended within {timeout} s; it goes on") from None
        return self._outcome(self._known(view))

    async def cancel(self) -> None:
        """Asks for the end of the job; a running handler is told and gets its grace."""
        connection = await self._connections.here()
        await connection.direct.cancel_job(self.id)

    def status_sync(self) -> str:
        return self._connections.call(self.status())

    def result_sync(self, timeout: float | str | None = None) -> R_co:
        return self._connections.call(self.result(timeout))

    def cancel_sync(self) -> None:
        self._connections.call(self.cancel())

    def _known(self, view: JobView | None) -> JobView:
        if view is None:
            raise NotFound(f"job {self.id} is not known any more; it was deleted, or its history has expired")
        return view

    def _outcome(self, view: JobView) -> R_co:
        run = view.last_run
        if view.job.kind is Kind.RECURRING:
            raise Conflict(f"job {self.id} is recurring and has many results; ask its runs for theirs")
        if run is None:
            raise RunFailed(self.id, view.status, None)
        if run.state is not State.COMPLETED:
            error = json.loads(run.error) if run.error else None
            if error is None and run.reason:
                error = {"type": run.state.word, "message": run.reason}
            raise RunFailed(str(run.id), run.state.word, error)
        return self._task.decode_result(run.result or b"null")
