"""Time and chance, as the shell needs them; the simulation hands in its own."""

from __future__ import annotations

import os
import random
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds for waiting and for timing silence; random numbers for jitter and ids.

    Wall clocks of hosts decide nothing, so there is none here: store time is `monotonic() + offset`, the offset
    measured by the exchange with the smallest round trip.
    """

    def monotonic(self) -> float: ...

    def random(self) -> float: ...

    def random_bytes(self, count: int) -> bytes: ...


class SystemClock:
    """The machine's own."""

    def monotonic(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return random.random()

    def random_bytes(self, count: int) -> bytes:
        return os.urandom(count)
