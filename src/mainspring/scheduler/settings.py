"""What a scheduler can be told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Spans in seconds."""

    look_ahead: float = 5.0
    scan_every: float = 1.0
    scan_whole_every: float = 30.0
    scan_gap: float = 0.01
    look_ahead_jobs: int = 200_000
    look_ahead_chunk: int = 10_000
    fire_batch: int = 1_000
    fire_first: int = 250
    fire_at_once: int = 2
    overdue_after: float = 1.0
    member_beat: float = 1.0
    member_silent_after: float = 4.0
    watch_every: float = 0.5
    watch_own_signs_every: float = 0.25
    rescue_every: float = 1.0
    rescue_batch: int = 500
    promote_batch: int = 5_000
    idle_every: float = 1.0
    upkeep_every: float = 60.0
    history_days: int = 30
    log_days: int = 7
    misfire: str | None = None
