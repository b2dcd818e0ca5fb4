"""What a task needs of the application in order to be submitted; the application sets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from mainspring.tasks.task import Task

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class JobHandle(Protocol[R_co]):
    """A submitted job, as its submitter holds it."""

    @property
    def id(self) -> str: ...

    async def status(self) -> str:
        """The status of the job, or of its newest run, in the words of the API."""
        ...

    async def result(self, timeout: float | str | None = None) -> R_co:
        """Waits for the end: the result, or RunFailed; ResultTimeout after `timeout` (seconds, or such as "5m")."""
        ...

    async def cancel(self) -> None:
        """Ends what has not ended; a handler that runs is told and gets its grace."""
        ...

    def status_sync(self) -> str: ...

    def result_sync(self, timeout: float | str | None = None) -> R_co:
        """The same for code without an event loop."""
        ...

    def cancel_sync(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Order(Generic[R_co]):
    """One job to be submitted: a task, its encoded arguments, and API-shaped fields that override its defaults."""

    task: Task[..., object, R_co]
    payload: bytes
    options: Mapping[str, object] = field(default_factory=dict)


class Submitter(Protocol):
    """Stores orders, all or none, in one transaction; the handles come in the same order."""

    async def submit(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]: ...

    def submit_sync(self, orders: Sequence[Order[R]]) -> list[JobHandle[R]]: ...
