"""The ready line of one lane: what is queued, in the order in which it is claimed."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from mainspring.core.model import Instant, Run
from mainspring.core.states import State

Entry = tuple[int, int, int, int, Run]  # -priority, ready_at, id, serial number, the run


class Line:
    """Two heaps, so that what is not ready yet hides nothing behind it. Entries that no longer hold are dropped late."""

    __slots__ = ("_coming", "_ready", "_serial")

    def __init__(self) -> None:
        self._ready: list[Entry] = []
        self._coming: list[tuple[Instant, int, Run]] = []
        self._serial = 0

    def add(self, run: Run) -> None:
        self._serial += 1
        heappush(self._coming, (run.ready_at, self._serial, run))

    def head(self, now: Instant, fit: Callable[[Run], bool], aside: list[tuple[Line, Run]]) -> Entry | None:
        """The first that may be claimed now; those that are not fit for this claim are put aside."""
        self._settle(now)
        while self._ready:
            entry = self._ready[0]
            run = entry[4]
            if run.state is not State.QUEUED or run.ready_at != entry[1]:
                heappop(self._ready)
            elif run.ready_at > now or not fit(run):
                heappop(self._ready)
                aside.append((self, run))
            else:
                return entry
        return None

    def take(self) -> Run:
        """Removes the head."""
        return heappop(self._ready)[4]

    def _settle(self, now: Instant) -> None:
        while self._coming and self._coming[0][0] <= now:
            ready_at, serial, run = heappop(self._coming)
            if run.state is State.QUEUED and run.ready_at == ready_at:
                heappush(self._ready, (-run.priority, ready_at, run.id.int, serial, run))
