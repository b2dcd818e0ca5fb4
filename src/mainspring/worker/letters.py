"""What a worker and its keeper write to each other: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from mainspring.core.model import BeatAnswer

LINE_BYTES_MAX = 1024 * 1024


def line_of(letter: Mapping[str, object]) -> bytes:
    return json.dumps(letter, separators=(",", ":")).encode() + b"\n"


def read_line(line: bytes) -> dict[str, object]:
    letter = json.loads(line)
    return letter if isinstance(letter, dict) else {}


def acknowledgement(worker: UUID, sent: float, answer: BeatAnswer) -> bytes:
    return line_of(
        {
            "worker": str(worker),
            "sent": sent,
            "known": answer.known,
            "drain": answer.drain,
            "cancel": [[str(run_id), fence] for run_id, fence in answer.cancel],
            "now": answer.now,
        }
    )


def read_acknowledgement(letter: Mapping[str, object]) -> tuple[UUID, float, BeatAnswer]:
    cancel = letter.get("cancel")
    runs = tuple((UUID(run_id), int(fence)) for run_id, fence in cancel) if isinstance(cancel, list) else ()
    answer = BeatAnswer(bool(letter["known"]), bool(letter["drain"]), runs, number_of(letter, "now"))
    sent = letter["sent"]
    assert isinstance(sent, int | float)
    return UUID(str(letter["worker"])), float(sent), answer


def number_of(letter: Mapping[str, object], name: str) -> int:
    value = letter.get(name)
    return value if isinstance(value, int) else 0
