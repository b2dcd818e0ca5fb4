"""Events as lines of the standard library's logging: one line a batch, text or JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from typing import TextIO

from mainspring.observe import events

LOGGER = logging.getLogger("mainspring")


def configure(*, level: str = "INFO", form: str = "text", stream: TextIO | None = None) -> None:
    """Sets up the root logger of a program of ours: standard error, text or JSON."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.setLevel(level.upper())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def log_event(event: events.Event) -> None:
    """Subscribe this to a bus."""
    told = _TOLD.get(type(event).__name__)
    if told is None:
        LOGGER.info("%s", event)
        return
    level, logger = told
    if logger.isEnabledFor(level):
        message, fields = _describe(event)
        logger.log(level, message, extra={"fields": fields})


def _describe(event: events.Event) -> tuple[str, dict[str, object]]:
    match event:
        case events.RunsClaimed(worker, runs):
            return f"{len(runs)} runs claimed", {"worker": str(worker)}
        case events.RunsEnded(worker, runs):
            return f"{len(runs)} attempts ended: {_counted(runs)}", {"worker": str(worker)}
        case events.RunsRefused(worker, refused):
            return f"{len(refused)} endings refused as stale", {"worker": str(worker), "runs": _texts(refused)}
        case events.RunsAbandoned(worker, abandoned, why):
            return f"{len(abandoned)} handlers abandoned: {why}", {"worker": str(worker), "runs": _texts(abandoned)}
        case events.RunsRescued(rescued):
            return f"{len(rescued)} runs rescued", {"runs": [str(each.run_id) for each in rescued[:20]]}
        case events.JobsSubmitted(ids, _):
            return f"{len(ids)} jobs submitted", {"jobs": _texts(ids)}
        case events.RunsFired(scheduler, jobs, fired, skipped, lateness):
            told = f"{jobs} jobs fired: {len(fired)} runs, {skipped} skipped"
            return told, {"scheduler": str(scheduler), "lateness_ms": lateness / 1000}
        case events.WorkerStarted(worker, host, slots, queues, tasks):
            told = f"worker started: {slots} slots, queues {', '.join(queues) or 'all'}, {len(tasks)} tasks"
            return told, {"worker": str(worker), "host": host}
        case events.StoreLost(where, why):
            return f"the store does not answer {where}: {why}; trying again", {"where": where}
        case events.StoreBack(where, after):
            return f"the store answers {where} again after {after / 1e6:.1f} s", {"where": where}
        case _:
            return _spoken(type(event).__name__), _fields_of(event)


def _counted(runs: object) -> str:
    assert isinstance(runs, list | tuple)
    counts = Counter(each.ending.outcome.value for each in runs)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())


def _texts(values: object) -> list[str]:
    assert isinstance(values, list | tuple)
    return [str(each) for each in values[:20]]


def _spoken(name: str) -> str:
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip()


def _fields_of(event: events.Event) -> dict[str, object]:
    names = [name for each in type(event).__mro__ for name in getattr(each, "__slots__", ())]
    return {name: _simple(getattr(event, name)) for name in names}


def _simple(value: object) -> object:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return _texts(value) if isinstance(value, list | tuple) else str(value)


class TextFormatter(logging.Formatter):
    """`2026-11-18T10:00:00.123Z INFO mainspring.worker worker started worker=…`; always one line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None) or {}
        said = " ".join(f"{name}={_shown(value)}" for name, value in fields.items())
        line = f"{_time_of(record)} {record.levelname} {record.name} {_one_line(record.getMessage())}"
        parts = [line, said] if said else [line]
        if record.exc_info:
            parts.append("traceback=" + json.dumps(self.formatException(record.exc_info)))
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", None) or {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _time_of(record: logging.LogRecord) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{moment}.{int(record.msecs):03d}Z"


def _shown(value: object) -> str:
    return value if isinstance(value, str) and value.isalnum() else json.dumps(value, default=str)


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


_WORK = logging.getLogger("mainspring.worker")
_TIME = logging.getLogger("mainspring.scheduler")
_JOBS = logging.getLogger("mainspring.client")
_STORE = logging.getLogger("mainspring.store")
_TOLD: dict[str, tuple[int, logging.Logger]] = {
    "JobsSubmitted": (logging.DEBUG, _JOBS),
    "JobsChanged": (logging.INFO, _JOBS),
    "RunsFired": (logging.DEBUG, _TIME),
    "RunsClaimed": (logging.DEBUG, _WORK),
    "RunsEnded": (logging.DEBUG, _WORK),
    "RunsRefused": (logging.WARNING, _WORK),
    "RunsAbandoned": (logging.WARNING, _WORK),
    "RunsRescued": (logging.WARNING, _TIME),
    "RunsPromoted": (logging.DEBUG, _TIME),
    "RunsExpired": (logging.INFO, _TIME),
    "LogLinesDropped": (logging.WARNING, _WORK),
    "WorkerStarted": (logging.INFO, _WORK),
    "WorkerDraining": (logging.INFO, _WORK),
    "WorkerStopped": (logging.INFO, _WORK),
    "WorkerLost": (logging.WARNING, _WORK),
    "WorkerRevoked": (logging.WARNING, _WORK),
    "SchedulerStarted": (logging.INFO, _TIME),
    "SchedulerStopped": (logging.INFO, _TIME),
    "KeeperStarted": (logging.INFO, _WORK),
    "StoreLost": (logging.WARNING, _STORE),
    "StoreBack": (logging.INFO, _STORE),
    "StepFailed": (logging.ERROR, LOGGER),
}
