"""One claimed run, carried out where the test stands: no worker process and no thread."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from functools import reduce
from uuid import UUID

from mainspring.core.decide import Next
from mainspring.core.model import Claimed, Ending, LogLine
from mainspring.core.policy import policy_of
from mainspring.tasks.context import CURRENT, RunContext
from mainspring.tasks.registry import CallNext, Middleware, Registry
from mainspring.testing.clock import VirtualClock
from mainspring.worker import outcome

WORKER = UUID(int=1)


class Attempt:
    """What the handler of one claimed run does and says. A sync function is called here, not in a thread."""

    def __init__(self, claimed: Claimed, registry: Registry, clock: VirtualClock) -> None:
        task = registry.get(claimed.task)
        assert task is not None, f"{claimed.task} was claimed and is not registered"
        self._claimed = claimed
        self._task = task
        self._middleware = registry.middleware
        self._policy = policy_of(claimed.document)
        self._clock = clock
        self.lines: list[LogLine] = []
        self.said: str | None = None

    async def run(self) -> Ending:
        """Calls the handler through the middleware; answers what becomes of the run."""
        timeout = self._policy.timeout
        context = RunContext(self._claimed, self, None if timeout is None else self._clock.now + timeout)
        token = CURRENT.set(context)
        try:
            value = await wrapped(self._call, self._middleware)(context)
            result = None if value is None else outcome.bounded(self._task.encode_result(value))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises becomes an outcome of its run
            following = outcome.after_error(self._claimed, self._policy, error, self._clock.random())
            return self._ending(following, error=outcome.describe_error(error))
        finally:
            CURRENT.reset(token)
        return self._ending(outcome.after_return(self._claimed), result=result)

    def cancelled(self, ending: Ending) -> Ending:
        """The same attempt's end where a cancel came first."""
        return outcome.as_cancelled(outcome.Finished(self._claimed, ending, 0.0, self._clock.now), WORKER).ending

    async def _call(self, _: RunContext) -> object:
        args, kwargs = self._task.decode_arguments(self._claimed.payload)
        answer = self._task.function(*args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    def _ending(self, following: Next, *, result: bytes | None = None, error: str | None = None) -> Ending:
        return outcome.ending_of(
            self._claimed, following, worker=WORKER, finished_at=self._clock.now, result=result, error=error
        )

    # --- what the handler says of itself

    def log(self, run: RunContext, level: str, message: str, fields: dict[str, object]) -> None:
        text = json.dumps(fields, default=str) if fields else None
        self.lines.append(LogLine(run.claimed.id, run.attempt, self._clock.now, level, message, text))

    def gap(self, run: RunContext) -> None:
        """Nothing is left out here."""

    def progress(self, run: RunContext, value: float | None, message: str | None) -> None:
        del run
        self.said = json.dumps({"value": value, "message": message})


def wrapped(handler: CallNext, middleware: Sequence[Middleware]) -> CallNext:
    """The handler inside all middleware, the first registered outermost."""

    def wrap(inner: CallNext, outer: Middleware) -> CallNext:
        return lambda run: outer(run, inner)

    return reduce(wrap, reversed(middleware), handler)
