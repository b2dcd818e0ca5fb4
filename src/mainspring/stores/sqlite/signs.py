"""Signs of life: each process holds a lock of the operating system on a file of its own beside the store.

`flock` locks belong to the open file, not to the process: closing another descriptor of the same file does not drop
them, and the kernel drops them when the process is gone. A child made by fork without exec would keep its parent's
sign alive, so children close the descriptors they inherit.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from mainspring.core.errors import StoreRefuses
from mainspring.ports.store import Sign, Signs
from mainspring.stores.sqlite import forks

EPOCH = "operating-system"
_STOPPED = frozenset({"T", "t"})


class SignFiles:
    """The signs that this process holds, and the look at those of others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[UUID, int] = {}
        forks.watch(self)

    def hold(self, identity: UUID) -> None:
        """Waits only for the moment that somebody looks. Holding twice is holding once."""
        if identity in self._held:
            return
        path = self._path(identity)
        try:
            self.folder.mkdir(exist_ok=True)
            descriptor = _lock_new(path)
        except OSError as error:
            raise StoreRefuses(
                f"the sign of life {path} cannot be locked ({error.strerror}); "
                "make the folder beside the store writable for this user"
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._held[identity] = descriptor

    def look(self, identities: Sequence[UUID]) -> Signs:
        """An absence is never the store's doing: the epoch is always the same."""
        return Signs(EPOCH, {identity: self._look_at(identity) for identity in identities})

    def release(self) -> None:
        """The files go while they are locked, so that nobody mistakes a name for a sign."""
        while self._held:
            identity, descriptor = self._held.popitem()
            self._path(identity).unlink(missing_ok=True)
            os.close(descriptor)

    def before_fork(self) -> None:
        """Descriptors of locks may be open across a fork."""

    def after_fork(self, *, child: bool) -> None:
        """The parent goes on holding."""
        while child and self._held:
            os.close(self._held.popitem()[1])

    def remove_dead(self) -> None:
        """Files of processes that died without releasing them."""
        for path in self.folder.glob("*.sign"):
            _remove_if_free(path)

    def _path(self, identity: UUID) -> Path:
        return self.folder / f"{identity.hex}.sign"

    def _look_at(self, identity: UUID) -> Sign:
        if identity in self._held:
            return Sign.HELD
        try:
            descriptor = os.open(self._path(identity), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return Sign.FREE
        try:
            # Shared, so that two who look at the same moment do not take each other for the process.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Sign.STOPPED if _is_stopped(os.read(descriptor, 32)) else Sign.HELD
        finally:
            os.close(descriptor)
        return Sign.FREE


def _lock_new(path: Path) -> int:
    """A locked descriptor of the file that has this name now: somebody may remove a free one in between."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)


def _remove_if_free(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        return  # held: its process lives
    finally:
        os.close(descriptor)


def _is_stopped(pid: bytes) -> bool:
    """The process that wrote its number holds the lock at this moment, so the number is still its own."""
    if not pid.isdigit():
        return False
    try:
        stat = Path(f"/proc/{int(pid)}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    state = stat.rpartition(")")[2].split()[:1]
    return bool(state) and state[0] in _STOPPED
