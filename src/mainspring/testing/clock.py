"""Time that stands still until it is moved, and chance that is always the same."""

from __future__ import annotations

from mainspring.core.model import SECOND, Instant


class VirtualClock:
    """The clock of a sandbox and of its store."""

    def __init__(self, start: Instant) -> None:
        self.now = start
        self._drawn = 0

    def monotonic(self) -> float:
        return self.now / SECOND

    def random(self) -> float:
        """In the middle: the jitter of a retry is none."""
        return 0.5

    def random_bytes(self, count: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(8, "big").rjust(count, b"\0")[-count:]

    def store_now(self) -> Instant:
        return self.now

    def move_to(self, instant: Instant) -> None:
        self.now = max(self.now, instant)
