"""How long to wait before the next attempt, and whether there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mainspring.core.errors import InvalidInput
from mainspring.core.model import HOUR, SECOND, Duration
from mainspring.core.times import read_duration

ATTEMPTS_MAX = 1000
_EXPONENT_MAX = 64


class Backoff(StrEnum):
    FIXED = "fixed"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`jitter` is a share of the wait, taken plus or minus; it never takes the wait over `maximum`."""

    max_attempts: int = 3
    backoff: Backoff = Backoff.EXPONENTIAL
    initial: Duration = 2 * SECOND
    factor: float = 2.0
    maximum: Duration = HOUR
    jitter: float = 0.1

    def wait(self, failures: int, random_value: float) -> Duration:
        """The wait after the `failures`-th failure (1 is the first); `random_value` lies in [0, 1)."""
        capped = min(self._plain(max(1, failures)), float(self.maximum))
        lowest = capped * (1 - self.jitter)
        highest = min(capped * (1 + self.jitter), float(self.maximum))
        return round(lowest + (highest - lowest) * random_value)

    def _plain(self, failures: int) -> float:
        if self.backoff is Backoff.FIXED:
            return float(self.initial)
        if self.backoff is Backoff.LINEAR:
            return float(self.initial) * failures
        exponent = min(failures - 1, _EXPONENT_MAX)
        try:
            return float(self.initial) * self.factor**exponent
        except OverflowError:
            return float(self.maximum)


def read_retry(value: object, pointer: str = "/retry") -> RetryPolicy:
    """Reads the `retry` object of api.md; None is the default policy, a whole number is `max_attempts`."""
    if value is None:
        return RetryPolicy()
    if isinstance(value, RetryPolicy):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"max_attempts": value}
    if not isinstance(value, Mapping):
        raise InvalidInput.at(pointer, 'must be an object such as {"max_attempts": 3}')
    unknown = set(value) - {"max_attempts", "backoff", "initial", "factor", "max", "jitter"}
    if unknown:
        name = min(unknown, key=str)
        raise InvalidInput.at(
            f"{pointer}/{name}", "unknown field; known are max_attempts, backoff, initial, factor, max, jitter"
        )
    default = RetryPolicy()
    return RetryPolicy(
        max_attempts=_whole(value.get("max_attempts", default.max_attempts), f"{pointer}/max_attempts"),
        backoff=_backoff(value.get("backoff", default.backoff), f"{pointer}/backoff"),
        initial=_span(value, "initial", default.initial, pointer),
        factor=_number(value.get("factor", default.factor), f"{pointer}/factor", 1.0, 1000.0),
        maximum=_span(value, "max", default.maximum, pointer),
        jitter=_number(value.get("jitter", default.jitter), f"{pointer}/jitter", 0.0, 1.0),
    )


def _whole(value: object, pointer: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= ATTEMPTS_MAX:
        raise InvalidInput.at(pointer, f"must be a whole number from 1 to {ATTEMPTS_MAX}")
    return value


def _backoff(value: object, pointer: str) -> Backoff:
    try:
        return Backoff(str(value))
    except ValueError:
        raise InvalidInput.at(pointer, "must be fixed, linear or exponential") from None


def _number(value: object, pointer: str, lowest: float, highest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise InvalidInput.at(pointer, f"must be a number from {lowest:g} to {highest:g}")
    return float(value)


def _span(value: Mapping[object, object], name: str, default: Duration, pointer: str) -> Duration:
    return read_duration(value[name], f"{pointer}/{name}") if name in value else default
