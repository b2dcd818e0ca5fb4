"""The store's time between its answers: this machine's monotonic clock and an offset."""

from __future__ import annotations

from mainspring.core.model import SECOND, Instant
from mainspring.ports.clock import Clock

_TRUSTED_FOR = 60.0  # seconds; then a newer sample is taken even if its round trip was longer


class StoreTime:
    """The offset comes from the exchange with the smallest round trip of the last minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = 0
        self._round_trip: float | None = None
        self._sampled_at = 0.0

    def sample(self, sent: float, received: float, instant: Instant) -> None:
        """The store said `instant` between these two monotonic moments."""
        round_trip = received - sent
        stale = received - self._sampled_at > _TRUSTED_FOR
        if self._round_trip is None or stale or round_trip <= self._round_trip:
            self._round_trip = round_trip
            self._sampled_at = received
            self._offset = instant - round((sent + received) / 2 * SECOND)

    def at(self, moment: float) -> Instant:
        """The instant of a monotonic moment."""
        return self._offset + int(moment * SECOND)

    def now(self) -> Instant:
        return self.at(self._clock.monotonic())
