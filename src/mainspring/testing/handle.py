"""A submitted job in a sandbox: waiting for it means to carry out what is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from mainspring.app.handle import Handle
from mainspring.core.errors import ResultTimeout
from mainspring.core.model import JobView
from mainspring.tasks.task import Task

if TYPE_CHECKING:
    from mainspring.testing.sandbox import Sandbox

R_co = TypeVar("R_co", covariant=True)

_ENDED = frozenset({"completed", "failed", "cancelled", "skipped", "finished"})


class SandboxHandle(Handle[R_co]):
    """The same methods as those of a job in a real store."""

    def __init__(self, box: Sandbox, identity: UUID, task: Task[..., object, R_co]) -> None:
        super().__init__(box.app.connections, identity, task)
        self._box = box

    async def status(self) -> str:
        return self._known(await self._view()).status

    async def result(self, timeout: float | str | None = None) -> R_co:
        """Carries out what is ready; a job whose time has not come raises ResultTimeout, whatever `timeout` says."""
        del timeout
        await self._box.run()
        return self._settled(await self._view())

    async def cancel(self) -> None:
        await self._box.client.cancel_job(self.id)

    def status_sync(self) -> str:
        return self._known(self._box.at_once(self._view())).status

    def result_sync(self, timeout: float | str | None = None) -> R_co:
        del timeout
        self._box.run_sync()
        return self._settled(self._box.at_once(self._view()))

    def cancel_sync(self) -> None:
        self._box.at_once(self.cancel())

    async def _view(self) -> JobView | None:
        return (await self._box.client.store.jobs([self._identity]))[0]

    def _settled(self, view: JobView | None) -> R_co:
        known = self._known(view)
        if known.status not in _ENDED:
            raise ResultTimeout(f"job {self.id} is {known.status}: move the time on with advance() first")
        return self._outcome(known)
