"""Everything that Mainspring can raise, drawn as one tree.

MainspringError
├── CallerError                  the caller's request cannot be done as it was put
│   ├── InvalidInput             422  a field is wrong: names the field and the cure
│   ├── TooLarge                 413  a payload, body or batch over its bound
│   ├── NotFound                 404
│   ├── Conflict                 409  the state forbids it
│   │   └── KeyTaken             409  another live job has this key
│   ├── StaleVersion             412  If-Match names an older version
│   ├── NotAllowed               403
│   └── BacklogFull              429  too much is queued already
├── WorldError                   something outside is not as it should be; it may pass
│   ├── StoreUnavailable         503  cannot be reached; try again
│   ├── StoreRefuses             503  read-only, full or damaged
│   ├── SchemaError              the store's schema does not fit this program
│   └── ResultTimeout            `result()` waited long enough
├── RunFailed                    raised by `result()`: the run ended without a result
└── Wish                         raised by a handler: the outcome it wants
    ├── RetryLater               again after this time; spends no attempt
    ├── Discard                  end as failed, no retry
    └── Cancel                   end as cancelled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: a JSON pointer to it and what to do about it."""

    pointer: str
    detail: str


class MainspringError(Exception):
    """The root of the tree."""

    title = "Something went wrong"
    status = 500


class CallerError(MainspringError):
    title = "The request cannot be carried out"
    status = 400


class InvalidInput(CallerError):
    """One or more fields are wrong; nothing was stored."""

    title = "The input is not valid"
    status = 422

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{problem.pointer or '/'}: {problem.detail}" for problem in self.problems))

    @classmethod
    def at(cls, pointer: str, detail: str) -> InvalidInput:
        return cls([Problem(pointer, detail)])


class TooLarge(CallerError):
    title = "The input is too large"
    status = 413


class NotFound(CallerError):
    title = "Not found"
    status = 404


class Conflict(CallerError):
    """The state of the thing forbids the action; the message says which state it is in."""

    title = "The current state forbids this"
    status = 409


class KeyTaken(Conflict):
    """Another live job holds the key."""

    title = "The key is taken"

    def __init__(self, key: str, holder: str) -> None:
        self.key = key
        self.holder = holder
        super().__init__(
            f"key {key!r} belongs to job {holder}, which has not ended; "
            "use PUT /v1/jobs/by-key to replace it or choose another key"
        )


class StaleVersion(CallerError):
    title = "The version is stale"
    status = 412


class NotAllowed(CallerError):
    title = "Not allowed"
    status = 403


class BacklogFull(CallerError):
    title = "Too much is waiting already"
    status = 429

    def __init__(self, detail: str, retry_after_seconds: float = 1.0) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(detail)


class WorldError(MainspringError):
    title = "Something outside does not answer as it should"
    status = 503


class StoreUnavailable(WorldError):
    """The store cannot be reached or broke off; `unknown_outcome` when a commit may have happened."""

    title = "The store is unreachable"

    def __init__(self, detail: str, *, unknown_outcome: bool = False) -> None:
        self.unknown_outcome = unknown_outcome
        super().__init__(detail)


class StoreRefuses(WorldError):
    """The store is there but cannot be used as it is: a read-only file, a full disk, a damaged file."""

    title = "The store cannot be used as it is"


class SchemaError(WorldError):
    """The schema is newer than this program understands, older than it needs, or tampered with."""

    title = "The schema does not fit this program"


class ResultTimeout(WorldError, TimeoutError):
    title = "The result did not arrive in time"
    status = 504


class RunFailed(MainspringError):
    """The run ended without a result; `status` of the run and its error say why."""

    title = "The run ended without a result"

    def __init__(self, run_id: str, run_status: str, error: dict[str, str] | None) -> None:
        self.run_id = run_id
        self.run_status = run_status
        self.error = error
        cause = f": {error.get('type', '')}: {error.get('message', '')}" if error else ""
        super().__init__(f"run {run_id} ended {run_status}{cause}")


class Wish(Exception):
    """What a handler wants to become of its run."""


class RetryLater(Wish):
    """Try again after `delay` (seconds or a text such as "10m"); no attempt is spent."""

    def __init__(self, delay: object = 0, reason: str = "") -> None:
        self.delay = delay
        self.reason = reason
        super().__init__(reason or f"asked to be tried again after {delay}")


class Discard(Wish):
    """End as failed, without a retry."""


class Cancel(Wish):
    """End as cancelled."""
