"""What a worker process is told."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from mainspring.core.model import DEFAULT_NAMESPACE, MILLISECOND, SECOND, Duration

REPLACE = 75  # exit code: too many threads are lost, start me anew


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """`prefetch` bounds what may wait here unstarted, whatever was measured; 0 claims for free slots only."""

    slots: int = 10
    queues: tuple[str, ...] | None = None
    namespace: str = DEFAULT_NAMESPACE
    lease: Duration = 30 * SECOND
    beat: Duration = 3 * SECOND
    stall: Duration = 10 * SECOND
    drain: Duration = 30 * SECOND
    prefetch: int = 2000
    claim_max: int = 1000
    finish_max: int = 1000
    stuck_after: Duration = 50 * MILLISECOND
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    version: str = ""
