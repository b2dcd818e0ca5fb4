"""Sync functions: each slot has a thread of its own, so that one that never ends costs exactly its slot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import NamedTuple


class _Call(NamedTuple):
    function: Callable[..., object]
    args: Sequence[object]
    kwargs: Mapping[str, object]
    context: Context
    answer: asyncio.Future[_Answer]


class _Answer(NamedTuple):
    value: object
    error: BaseException | None


class Hand:
    """One daemon thread that carries out calls in order."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def call(
        self, function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        answer: asyncio.Future[_Answer] = self._loop.create_future()
        self._calls.put(_Call(function, args, kwargs, copy_context(), answer))
        value, error = await answer
        if error is not None:
            raise error
        return value

    def release(self) -> None:
        """The thread ends once its present call has."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            answer = _carry_out(call)
            try:
                self._loop.call_soon_threadsafe(_deliver, call.answer, answer)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more
            del call, answer


def _carry_out(call: _Call) -> _Answer:
    try:
        return _Answer(call.context.run(call.function, *call.args, **call.kwargs), None)
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises belongs to its run, not to this thread
        return _Answer(None, error)


def _deliver(future: asyncio.Future[_Answer], answer: _Answer) -> None:
    if not future.done():
        future.set_result(answer)
