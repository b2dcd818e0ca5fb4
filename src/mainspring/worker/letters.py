"""What a worker and its keeper write to each other: one JSON object a line."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
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


def socket_path(store_url: str, *, folder: Path | None = None) -> Path:
    """Where the keeper for this store listens on this host; the folder is ours alone."""
    place = folder or _runtime_folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise PermissionError(f"{place} belongs to somebody else or can be written by others; remove it")
    return place / f"{sha256(store_url.encode()).hexdigest()[:16]}.sock"


def _runtime_folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "mainspring"
    return Path(tempfile.gettempdir()) / f"mainspring-{os.getuid()}"
