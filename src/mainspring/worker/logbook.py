"""What handlers say: log lines and progress, gathered here and sent in batches that no run waits for."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from uuid import UUID

from mainspring.core.errors import WorldError
from mainspring.core.model import LOG_BYTES_MAX, LogLine
from mainspring.observe import events
from mainspring.tasks.context import CURRENT, RunContext
from mainspring.worker.outcome import clean
from mainspring.worker.surroundings import Surroundings

_LINES_MAX = 20_000
_BYTES_MAX = 32 * 1024 * 1024
_BATCH_LINES = 1000
_BATCH_BYTES = 1024 * 1024
_PAUSE = 0.05
_LINE_BYTES_MAX = 64 * 1024
_OVERHEAD = 50
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogBook:
    """The sink of all runs of this worker. `log` and `progress` may come from any thread."""

    def __init__(self, around: Surroundings, *, wake: Callable[[], None], wake_progress: Callable[[], None]) -> None:
        self._surroundings = around
        self._store = around.store
        self._store_time = around.store_time
        self._bus = around.bus
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._wake = wake
        self._wake_progress = wake_progress
        self._lines: deque[LogLine] = deque()
        self._bytes = 0
        self._dropped: Counter[tuple[UUID, int]] = Counter()
        self._progress: dict[UUID, tuple[int, str]] = {}

    @property
    def pending(self) -> int:
        return len(self._lines) + len(self._progress)

    def log(self, run: RunContext, level: str, message: str, fields: dict[str, object]) -> None:
        text, more = _shorten(clean(message)), _as_json(fields)
        size = len(text.encode()) + len(more or "") + _OVERHEAD
        if run.log_bytes + size > LOG_BYTES_MAX:
            run.log_gap += 1
            return
        run.log_bytes += size
        claimed = run.claimed
        self._add(LogLine(claimed.id, claimed.attempt, self._store_time.now(), level, text, more), size)

    def gap(self, run: RunContext) -> None:
        text = f"{run.log_gap} more lines were dropped: 1 MiB is kept an attempt"
        claimed = run.claimed
        self._add(LogLine(claimed.id, claimed.attempt, self._store_time.now(), "warning", text), len(text))

    def progress(self, run: RunContext, value: float | None, message: str | None) -> None:
        claimed = run.claimed
        said = {"value": value, "message": None if message is None else clean(str(message))[:1000]}
        self._progress[claimed.id] = (claimed.fence, json.dumps(said, ensure_ascii=False))
        self._signal(self._wake_progress)

    async def step(self, now: float) -> float | None:
        """Sends one batch of lines; what cannot be sent waits, up to a bound."""
        del now
        self._note_gaps()
        if not self._lines:
            return None
        batch = self._take()
        try:
            await self._store.append_logs(batch)
        except WorldError:
            self._put_back(batch)
            raise
        return _PAUSE

    async def step_progress(self, now: float) -> float | None:
        """Of each run the last that was said, a few times a second at most."""
        del now
        if not self._progress:
            return None
        sent, self._progress = self._progress, {}
        items = [(run_id, fence, text) for run_id, (fence, text) in sent.items()]
        try:
            await self._store.progress(self._surroundings.worker, items)
        except WorldError:
            self._progress = {**sent, **self._progress}
            raise
        return _PAUSE * 2

    def _add(self, line: LogLine, size: int) -> None:
        if len(self._lines) >= _LINES_MAX or self._bytes + size > _BYTES_MAX:
            self._dropped[line.run_id, line.attempt] += 1
            return
        self._bytes += size
        self._lines.append(line)
        self._signal(self._wake)

    def _signal(self, wake: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            wake()
            return
        try:
            self._loop.call_soon_threadsafe(wake)
        except RuntimeError:
            return  # the loop is closed; a thread that outlived it has nobody to tell

    def _take(self) -> list[LogLine]:
        batch: list[LogLine] = []
        size = 0
        while self._lines and len(batch) < _BATCH_LINES and size < _BATCH_BYTES:
            line = self._lines.popleft()
            batch.append(line)
            size += _size_of(line)
        self._bytes -= size
        return batch

    def _put_back(self, batch: list[LogLine]) -> None:
        self._lines.extendleft(reversed(batch))
        self._bytes += sum(map(_size_of, batch))

    def _note_gaps(self) -> None:
        """Where lines were dropped under pressure, their runs' logs say how many."""
        if not self._dropped or len(self._lines) >= _LINES_MAX // 2:
            return
        dropped, self._dropped = self._dropped, Counter()
        at = self._store_time.now()
        for (run_id, attempt), count in dropped.items():
            self._lines.append(LogLine(run_id, attempt, at, "warning", f"{count} lines were dropped under pressure"))
        self._bus.publish(events.LogLinesDropped(self._surroundings.worker, dropped.total(), "pressure"))


class Capture(logging.Handler):
    """Brings what is logged inside a handler, through whatever logger, into the log of its run.

    One serves a process, however many workers there are in it.
    """

    def __init__(self, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._users = 0
        self._restore: list[tuple[logging.Handler, int]] = []
        self._root_level = logging.WARNING

    def emit(self, record: logging.LogRecord) -> None:
        run = CURRENT.get(None)
        if run is None:
            return
        try:
            fields = {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}
            fields["logger"] = record.name
            if record.exc_info:
                fields["traceback"] = logging.Formatter().formatException(record.exc_info)
            run.say(record.levelname.lower(), record.getMessage(), fields)
        except Exception:  # noqa: BLE001 - what cannot be logged must not fail its handler
            self.handleError(record)

    def install(self) -> None:
        """Listens at the root from INFO on; what went elsewhere before still goes there, and nothing more."""
        self._users += 1
        if self._users > 1:
            return
        root = logging.getLogger()
        self._root_level = root.level
        if not root.handlers and logging.lastResort is not None:
            root.addHandler(logging.lastResort)
            self._restore.append((logging.lastResort, logging.lastResort.level))
        if root.level > self.level:
            for handler in root.handlers:
                if handler.level < root.level:
                    self._restore.append((handler, handler.level))
                    handler.setLevel(root.level)
            root.setLevel(self.level)
        root.addHandler(self)

    def uninstall(self) -> None:
        self._users -= 1
        if self._users:
            return
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._root_level)
        for handler, level in reversed(self._restore):
            handler.setLevel(level)
            if handler is logging.lastResort:
                root.removeHandler(handler)
        self._restore.clear()


CAPTURE = Capture()


def _shorten(text: str) -> str:
    return text if len(text) <= _LINE_BYTES_MAX else text[: _LINE_BYTES_MAX - 1] + "…"


def _as_json(fields: dict[str, object]) -> str | None:
    """What has no form in JSON is left out rather than failing the handler that said it."""
    if not fields:
        return None
    try:
        text = clean(json.dumps(fields, default=str))
    except Exception:  # noqa: BLE001 - a user's __str__ may raise anything
        return json.dumps({"fields": "could not be written as JSON"})
    return text if len(text) <= _LINE_BYTES_MAX else json.dumps({"fields": f"{len(text)} characters, left out"})


def _size_of(line: LogLine) -> int:
    return len(line.message.encode()) + len(line.fields or "") + _OVERHEAD
