"""What the machine says: versions, CPU seconds of processes, how long a flush to disk takes."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

_PACKAGES = ("mainspring", "asyncpg", "uvloop", "msgspec", "pysqlite3")
_TICKS = os.sysconf("SC_CLK_TCK")
_FLUSHES = 50
_WRITE_BYTES = 16_384


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def family(pid: int) -> list[int]:
    """A process and all that descend from it and live."""
    found = [pid]
    for each in found:
        found += _children(each)
    return found


def cpu_seconds(pids: list[int], *, with_reaped: bool = False) -> float:
    """What these processes have used so far; `with_reaped` adds their ended children. A process that is gone counts 0."""
    return sum(_cpu_ticks(pid, 4 if with_reaped else 2) for pid in pids) / _TICKS


def parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def flush_milliseconds(folder: Path) -> float:
    """The median of some flushes in this folder, each of a small write behind the last one, as a log is written."""
    path = folder / f".mainspring-bench-{os.getpid()}"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        return median([_flush(descriptor, place) for place in range(_FLUSHES)]) * 1000
    finally:
        os.close(descriptor)
        path.unlink()


def _flush(descriptor: int, place: int) -> float:
    os.pwrite(descriptor, os.urandom(_WRITE_BYTES), place * _WRITE_BYTES)
    started = time.perf_counter()
    os.fdatasync(descriptor)
    return time.perf_counter() - started


def _children(pid: int) -> list[int]:
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def _cpu_ticks(pid: int, fields: int) -> int:
    """utime, stime, and those of reaped children."""
    return sum(map(int, _stat(pid)[11 : 11 + fields]))


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat from the state on: what stands before it is a name in brackets that may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []
