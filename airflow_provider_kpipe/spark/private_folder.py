"""A folder with secrets that belongs to one process. If the process cannot remove it, the next one does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType

PREFIX = "kpipe-run-"
LOCK = "lock"
# Longer than a process ever takes from making its folder to locking it.
BEING_MADE_SECONDS = 60.0


class PrivateFolder:
    """A context manager: the folder exists during the block, and only this user can read it.

    A process that is killed outright leaves it behind, unlocked. The next one of this user on this machine removes it.
    """

    def __enter__(self) -> Path:
        remove_abandoned()
        self._path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock(self._path)
        return self._path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove the folders of this user's dead processes; ignore one that cannot be removed."""
    with contextlib.suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if _is_abandoned(folder):
                    # A link is safe: rmtree refuses to follow it.
                    shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path) -> int:
    """Lock the folder by a descriptor that no child inherits: the kernel unlocks it when this process ends."""
    unnamed = folder / f"{LOCK}.new"
    descriptor = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    # Renamed only when locked: another process always finds the lock of a living process taken.
    unnamed.rename(folder / LOCK)
    return descriptor


def _is_abandoned(folder: Path) -> bool:
    found = folder.lstat()
    if found.st_uid != os.geteuid():
        return False
    try:
        with (folder / LOCK).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return time.time() - found.st_mtime > BEING_MADE_SECONDS
    return True
