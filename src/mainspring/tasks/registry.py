"""The tasks of an application by name, and what is to happen around them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Never, ParamSpec, TypeVar, overload

from mainspring.core.errors import InvalidInput
from mainspring.tasks.context import RunContext
from mainspring.tasks.options import TASK_OPTIONS, read_options
from mainspring.tasks.task import Task

P = ParamSpec("P")
R = TypeVar("R")

AnyTask = Task[..., object, object]
Hook = Callable[[], Awaitable[None] | None]
CallNext = Callable[[RunContext], Awaitable[object]]
Middleware = Callable[[RunContext, CallNext], Awaitable[object]]


class Registry:
    """What a worker can run. Names are matched exactly: nothing is ever imported by a name from data."""

    def __init__(self) -> None:
        self._tasks: dict[str, AnyTask] = {}
        self.on_start: list[Hook] = []
        self.on_stop: list[Hook] = []
        self.middleware: list[Middleware] = []

    @overload
    def add(
        self, function: Callable[P, Coroutine[object, Never, R]], *, name: str | None = None, **options: object
    ) -> Task[P, Coroutine[object, Never, R], R]: ...

    @overload
    def add(self, function: Callable[P, R], *, name: str | None = None, **options: object) -> Task[P, R, R]: ...

    def add(
        self, function: Callable[P, object], *, name: str | None = None, **options: object
    ) -> Task[P, object, object]:
        """Makes the function a task. Two of one name are refused, and so are options that do not exist."""
        title = name or getattr(function, "__name__", "")
        if not title or title == "<lambda>":
            raise InvalidInput.at("/name", "a task needs a name: pass name=… where the function has none")
        if title in self._tasks:
            raise InvalidInput.at(
                "/name",
                f"two tasks are named {title!r}: {_place(self._tasks[title].function)} and {_place(function)}; "
                "give one of them another name=",
            )
        _check_runner(function, options.pop("runner", None))
        document = read_options(options, TASK_OPTIONS, of=f"task {title}")
        task: Task[P, object, object] = Task(function, name=title, document=document)
        self._tasks[title] = task
        return task

    def get(self, name: str) -> AnyTask | None:
        return self._tasks.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tasks))

    def __iter__(self) -> Iterator[AnyTask]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks


def _place(function: Callable[..., object]) -> str:
    module = getattr(function, "__module__", "?")
    code = getattr(function, "__code__", None)
    return f"{module}:{code.co_firstlineno}" if code is not None else module


def _check_runner(function: Callable[..., object], runner: object) -> None:
    natural = "async" if inspect.iscoroutinefunction(function) else "thread"
    if runner not in (None, natural):
        raise InvalidInput.at("/runner", f"{runner!r} does not fit this function; it is run as {natural!r}")
