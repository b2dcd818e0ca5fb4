"""Store time from a monotonic clock: the offset measured by the exchange with the smallest round trip."""

from __future__ import annotations

from collections import deque

from mainspring.core.model import SECOND, Instant
from mainspring.ports.clock import Clock
from mainspring.ports.store import Store

MEASURE_EVERY_SECONDS = 10.0
_SAMPLES_KEPT = 6
_STEPPED_BY = SECOND


class StoreTime:
    """Knows what the store's clock says without asking it each time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES_KEPT)
        self._offset = 0
        self._measured_at = float("-inf")

    @property
    def measured(self) -> bool:
        return bool(self._samples)

    def now(self) -> Instant:
        """The store's time as far as known; `measure` or `sample` first."""
        return self.at(self._clock.monotonic())

    def at(self, moment: float) -> Instant:
        """The instant of a monotonic moment."""
        return self._offset + int(moment * SECOND)

    def seconds_until(self, instant: Instant) -> float:
        return max(0.0, (instant - self.now()) / SECOND)

    async def refresh(self) -> None:
        """Measures if the last measurement is old."""
        if self._clock.monotonic() - self._measured_at >= MEASURE_EVERY_SECONDS:
            await self.measure()

    async def measure(self) -> None:
        """One exchange with the store."""
        sent = self._clock.monotonic()
        answered = await self._store.now()
        self.sample(sent, self._clock.monotonic(), answered)

    def sample(self, sent: float, received: float, instant: Instant) -> None:
        """The store said `instant` between these two moments. A step of its clock makes older samples void."""
        offset = instant - int((sent + received) / 2 * SECOND)
        if self._samples and abs(offset - self._offset) > _STEPPED_BY:
            self._samples.clear()
        self._samples.append((received - sent, offset))
        self._offset = min(self._samples)[1]
        self._measured_at = received
