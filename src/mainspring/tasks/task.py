"""A function that can be submitted as a job and is otherwise still a function."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, ParamSpec, TypeVar

from mainspring.core.errors import InvalidInput, Problem
from mainspring.core.model import TaskInfo
from mainspring.tasks.codec import ArgumentCodec, ResultCodec
from mainspring.tasks.options import JOB_OPTIONS, read_options
from mainspring.tasks.signature import signature_text
from mainspring.tasks.submitter import JobHandle, Order, Submitter

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)  # what a plain call answers: a coroutine where the function is async
R_co = TypeVar("R_co", covariant=True)  # what the function comes to


class Task(Generic[P, T_co, R_co]):
    """`document` holds the fields of the API that the decorator set: the defaults of its jobs."""

    def __init__(
        self,
        function: Callable[P, T_co],
        *,
        name: str,
        document: Mapping[str, object] | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.document = dict(document or {})
        self.runner = "async" if inspect.iscoroutinefunction(function) else "thread"
        self.submitter: Submitter | None = None
        self._arguments = ArgumentCodec(function, name)
        self._result = ResultCodec(function)
        self.encode_result = self._result.encode
        self.decode_arguments = self._arguments.decode
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        return await BoundTask(self, {}).submit(*args, **kwargs)

    async def submit_many(self, calls: Iterable[object]) -> list[JobHandle[R_co]]:
        """Submits one job a call, all or none; a call is a tuple of arguments, a mapping of them, or the only one."""
        return await BoundTask(self, {}).submit_many(calls)

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        return BoundTask(self, {}).submit_sync(*args, **kwargs)

    def submit_many_sync(self, calls: Iterable[object]) -> list[JobHandle[R_co]]:
        return BoundTask(self, {}).submit_many_sync(calls)

    def options(self, **options: object) -> BoundTask[P, T_co, R_co]:
        """The same task with fields of the API (`delay`, `priority`, `key`, …) for what is submitted through it."""
        return BoundTask(self, read_options(options, JOB_OPTIONS, of="options()"))

    def encode_arguments(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bytes:
        return self._arguments.encode(args, kwargs)

    def decode_result(self, result: bytes) -> R_co:
        decoded: R_co = self._result.decode(result)
        return decoded

    def info(self) -> TaskInfo:
        """What a worker registers about it."""
        signature = signature_text(self._arguments.parameters, open_ended=self._arguments.open_ended)
        defaults = json.dumps(self.document, separators=(",", ":"), sort_keys=True) if self.document else None
        return TaskInfo(self.name, signature, defaults)


class BoundTask(Generic[P, T_co, R_co]):
    """A task and the options of one submission."""

    def __init__(self, task: Task[P, T_co, R_co], options: Mapping[str, object]) -> None:
        self.task = task
        self._options = options

    def options(self, **options: object) -> BoundTask[P, T_co, R_co]:
        more = read_options(options, JOB_OPTIONS, of="options()")
        return BoundTask(self.task, {**self._options, **more})

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        return (await self._submitter().submit([self._order(args, kwargs)]))[0]

    async def submit_many(self, calls: Iterable[object]) -> list[JobHandle[R_co]]:
        return await self._submitter().submit(self._orders(calls))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        return self._submitter().submit_sync([self._order(args, kwargs)])[0]

    def submit_many_sync(self, calls: Iterable[object]) -> list[JobHandle[R_co]]:
        return self._submitter().submit_sync(self._orders(calls))

    def _order(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Order[R_co]:
        return Order(self.task, self.task.encode_arguments(args, kwargs), self._options)

    def _orders(self, calls: Iterable[object]) -> list[Order[R_co]]:
        orders = []
        for index, call in enumerate(calls):
            args, kwargs = _spread(call)
            try:
                orders.append(self._order(args, kwargs))
            except InvalidInput as error:
                raise InvalidInput(
                    [_at_index(problem.pointer, index, problem.detail) for problem in error.problems]
                ) from None
        return orders

    def _submitter(self) -> Submitter:
        if self.task.submitter is None:
            raise RuntimeError(f"task {self.task.name} belongs to no application; register it with @app.task")
        return self.task.submitter


def _spread(call: object) -> tuple[tuple[object, ...], Mapping[str, object]]:
    if isinstance(call, Mapping):
        return (), call
    return (tuple(call), {}) if isinstance(call, tuple | list) else ((call,), {})


def _at_index(pointer: str, index: int, detail: str) -> Problem:
    return Problem(f"/{index}{pointer}", detail)
