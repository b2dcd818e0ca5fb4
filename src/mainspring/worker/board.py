"""A page of memory that a worker and its keeper share: what the worker's loop is doing, readable while it is blocked."""

from __future__ import annotations

import math
import mmap
import os
import struct
from typing import NamedTuple
from uuid import UUID

NEVER = math.inf
_SIZE = 4096
_LOOP = struct.Struct("=ddq")  # when the loop last turned, the nearest deadline then, whether anything runs
_BEGUN = struct.Struct("=16sqdd")  # run, fence, deadline, when it began: the newest run that was begun
_CULPRIT = struct.Struct("=16sqd")  # run, fence, when seen: who holds the loop, where a thread could tell
_AT_LOOP, _AT_BEGUN, _AT_CULPRIT = 0, 64, 128


class Glance(NamedTuple):
    """What a keeper sees at one look."""

    active: bool
    beat_at: float
    deadline: float
    culprit: UUID | None

    def blocked(self, now: float, patience: float) -> bool:
        """Whether the loop has not turned for a while and a run that it holds is past its timeout."""
        return self.active and now - self.beat_at > patience and now > self.deadline + patience


class SharedBoard:
    """`path` is how another process of the same user opens it; nothing lies on a disk."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("mainspring-board")
        os.ftruncate(self._descriptor, _SIZE)
        self._page = mmap.mmap(self._descriptor, _SIZE)
        self._begin = _BEGUN.pack_into

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def begin(self, run_id: bytes, fence: int, deadline: float, now: float) -> None:
        self._begin(self._page, _AT_BEGUN, run_id, fence, deadline, now)

    def beat(self, now: float, nearest_deadline: float) -> None:
        _LOOP.pack_into(self._page, _AT_LOOP, now, nearest_deadline, 1)

    def rest(self) -> None:
        _LOOP.pack_into(self._page, _AT_LOOP, 0.0, NEVER, 0)

    def blame(self, run_id: bytes, fence: int, now: float) -> None:
        """Somebody beside the loop has seen who holds it."""
        _CULPRIT.pack_into(self._page, _AT_CULPRIT, run_id, fence, now)

    def blocked_for(self, now: float) -> float:
        beat_at, _, active = _LOOP.unpack_from(self._page, _AT_LOOP)
        return now - float(beat_at) if active else 0.0

    def glance(self) -> Glance:
        return _read(self._page)


class SeenBoard:
    """The keeper's view of a worker's board."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            self._page = mmap.mmap(descriptor, _SIZE, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)

    def glance(self) -> Glance:
        return _read(self._page)

    def close(self) -> None:
        self._page.close()


def _read(page: mmap.mmap) -> Glance:
    beat_at, nearest, active = _LOOP.unpack_from(page, _AT_LOOP)
    run_id, _, deadline, begun_at = _BEGUN.unpack_from(page, _AT_BEGUN)
    blamed_id, _, blamed_at = _CULPRIT.unpack_from(page, _AT_CULPRIT)
    begun_since = begun_at >= beat_at and begun_at > 0
    culprit: UUID | None = None
    if blamed_at > beat_at:
        culprit = UUID(bytes=blamed_id)
    elif begun_since:
        culprit = UUID(bytes=run_id)
    return Glance(bool(active), beat_at, min(nearest, deadline if begun_since else NEVER), culprit)
