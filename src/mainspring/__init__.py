"""Mainspring: every job on time, once; and where that did not happen, a record that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.app.application import Mainspring
    from mainspring.core.errors import (
        Cancel,
        Conflict,
        Discard,
        InvalidInput,
        MainspringError,
        NotFound,
        ResultTimeout,
        RetryLater,
        RunFailed,
        StoreUnavailable,
    )
    from mainspring.tasks.context import current_run
    from mainspring.tasks.retry import Retry
    from mainspring.tasks.submitter import JobHandle

__version__ = "0.1.0"

__all__ = [
    "Cancel",
    "Conflict",
    "Discard",
    "InvalidInput",
    "JobHandle",
    "Mainspring",
    "MainspringError",
    "NotFound",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "RunFailed",
    "StoreUnavailable",
    "current_run",
]

# Where each name lives. It is fetched when it is first asked for: importing the package costs next to nothing.
_HOMES = {
    "Mainspring": "mainspring.app.application",
    "Retry": "mainspring.tasks.retry",
    "JobHandle": "mainspring.tasks.submitter",
    "current_run": "mainspring.tasks.context",
}
_ERRORS = "mainspring.core.errors"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES.get(name, _ERRORS)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
