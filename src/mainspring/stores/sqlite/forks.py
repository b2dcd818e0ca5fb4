"""What holds connections or locks of this process is told before and after it forks."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forking(Protocol):
    def before_fork(self) -> None: ...

    def after_fork(self, *, child: bool) -> None: ...


_watched: weakref.WeakSet[Forking] = weakref.WeakSet()
_resting: list[Forking] = []


def watch(one: Forking) -> None:
    """For as long as it lives."""
    _watched.add(one)


def _before() -> None:
    for one in list(_watched):
        one.before_fork()
        _resting.append(one)


def _after_in_parent() -> None:
    while _resting:
        _resting.pop().after_fork(child=False)


def _after_in_child() -> None:
    while _resting:
        _resting.pop().after_fork(child=True)


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
