"""What the simulation remembers, apart from the store: the journal of store verbs, the ledger of handlers, the
clients' history and the faults. The checkers judge by these."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from mainspring.core.model import Instant


class Entry(NamedTuple):
    """One verb that took effect in the store: when, for whom, what was asked, what it answered."""

    at: Instant
    process: str
    verb: str
    asked: Any
    answer: Any


class Mark(NamedTuple):
    """Something a handler did: start, end, effect."""

    at: Instant
    process: str
    worker: UUID
    kind: str
    run: UUID
    job: UUID
    fence: int
    attempt: int


@dataclass(slots=True)
class Submission:
    """One job that a client sent: `accepted` None means that the client never learnt."""

    id: UUID
    plan: str
    sent_at: Instant
    accepted: bool | None = None
    key: str | None = None
    every: int | None = None
    scheduled_at: Instant | None = None
    max_attempts: int = 3
    timeout: int | None = None
    grace: int = 1_000_000
    on_lost: str = "retry"
    overlap: str | None = None
    misfire: str | None = None
    misfire_limit: int = 100


@dataclass(slots=True)
class Evidence:
    journal: list[Entry] = field(default_factory=list)
    ledger: list[Mark] = field(default_factory=list)
    submissions: dict[UUID, Submission] = field(default_factory=dict)
    deaths: dict[UUID, Instant] = field(default_factory=dict)
    pauses: list[tuple[str, Instant, Instant]] = field(default_factory=list)
    acknowledged: dict[UUID, list[tuple[Instant, Instant]]] = field(default_factory=dict)
    worker_process: dict[UUID, str] = field(default_factory=dict)
    cancels: dict[UUID, Instant] = field(default_factory=dict)
    job_pauses: dict[UUID, list[tuple[Instant, Instant | None]]] = field(default_factory=dict)
    queue_pauses: dict[str, list[tuple[Instant, Instant | None]]] = field(default_factory=dict)
    redeemed: set[UUID] = field(default_factory=set)
    outages: list[tuple[Instant, Instant]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    healed_at: Instant = 0
    finished_at: Instant = 0
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=12))

    def record(self, entry: Entry) -> None:
        self.journal.append(entry)
        self.digest.update(f"{entry.at}|{entry.process}|{entry.verb}|{entry.answer}".encode())

    def mark(self, mark: Mark) -> None:
        self.ledger.append(mark)
        self.digest.update(repr(mark).encode())

    @property
    def trace_hash(self) -> str:
        return str(self.digest.hexdigest())
