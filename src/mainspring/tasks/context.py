"""What a handler can know and say about the attempt it is."""

from __future__ import annotations

import traceback
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mainspring.core.model import Claimed, Instant

CURRENT: ContextVar[RunContext] = ContextVar("mainspring_run")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RunSink(Protocol):
    """Where what a handler says goes; safe to call from any thread, and never waits."""

    def log(self, run: RunContext, level: str, message: str, fields: dict[str, object]) -> None: ...

    def gap(self, run: RunContext) -> None:
        """The attempt has ended, and some of its lines were not kept."""
        ...

    def progress(self, run: RunContext, value: float | None, message: str | None) -> None: ...


class RunContext:
    """One attempt of a run. Times are in UTC, by the store's clock."""

    __slots__ = ("_claimed", "_sink", "cancelled", "deadline_at", "log_bytes", "log_gap")

    def __init__(self, claimed: Claimed, sink: RunSink, deadline_at: Instant | None) -> None:
        self._claimed = claimed
        self._sink = sink
        self.deadline_at = deadline_at
        self.cancelled = False
        self.log_bytes = 0
        self.log_gap = 0

    def __repr__(self) -> str:
        return f"<run {self.id} of {self.task}, attempt {self.attempt}>"

    @property
    def id(self) -> str:
        """Equal over all attempts: an idempotency key."""
        return str(self._claimed.id)

    @property
    def job_id(self) -> str:
        return str(self._claimed.job_id)

    @property
    def attempt(self) -> int:
        return self._claimed.attempt

    @property
    def fence(self) -> int:
        """Grows with every claim of the run: a target that keeps the highest it saw is never overwritten by an older attempt."""
        return self._claimed.fence

    @property
    def task(self) -> str:
        return self._claimed.task

    @property
    def queue(self) -> str:
        return self._claimed.queue

    @property
    def scheduled_at(self) -> datetime:
        return _moment(self._claimed.scheduled_at)

    @property
    def started_at(self) -> datetime:
        return _moment(self._claimed.started_at)

    @property
    def lateness(self) -> timedelta:
        return timedelta(microseconds=self._claimed.lateness)

    @property
    def catch_up(self) -> bool:
        """Whether this run makes up for an occurrence that was missed."""
        return self._claimed.catch_up

    @property
    def deadline(self) -> datetime | None:
        """When the attempt will be timed out."""
        return None if self.deadline_at is None else _moment(self.deadline_at)

    @property
    def log(self) -> RunLog:
        """The attempt's own log; what goes through `logging` during it lands there as well."""
        return RunLog(self)

    @property
    def claimed(self) -> Claimed:
        return self._claimed

    def progress(self, value: float | None, message: str | None = None) -> None:
        """How far it is (0 to 1), and what it does; of several within a moment the last is kept."""
        self._sink.progress(self, value, message)

    def say(self, level: str, message: str, fields: dict[str, object]) -> None:
        self._sink.log(self, level, message, fields)


class RunLog:
    """Lines of the attempt's log; keywords become structured fields."""

    __slots__ = ("_run",)

    def __init__(self, run: RunContext) -> None:
        self._run = run

    def debug(self, message: str, *args: object, **fields: object) -> None:
        self._run.say("debug", _format(message, args), fields)

    def info(self, message: str, *args: object, **fields: object) -> None:
        self._run.say("info", _format(message, args), fields)

    def warning(self, message: str, *args: object, **fields: object) -> None:
        self._run.say("warning", _format(message, args), fields)

    def error(self, message: str, *args: object, **fields: object) -> None:
        self._run.say("error", _format(message, args), fields)

    def critical(self, message: str, *args: object, **fields: object) -> None:
        self._run.say("critical", _format(message, args), fields)

    def exception(self, message: str, *args: object, **fields: object) -> None:
        """An error line that carries the traceback of the exception being handled."""
        self._run.say("error", _format(message, args), {**fields, "traceback": traceback.format_exc()})


def current_run() -> RunContext:
    """The run that this code is carried out for; LookupError outside of one."""
    try:
        return CURRENT.get()
    except LookupError:
        raise LookupError("current_run() is only known inside a task that a worker runs") from None


def _format(message: str, args: tuple[object, ...]) -> str:
    text = str(message)
    if not args:
        return text
    try:
        return text % args
    except (TypeError, ValueError):
        return " ".join([text, *map(str, args)])


def _moment(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)
