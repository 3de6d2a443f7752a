"""Whether processes have ended, also those that are nobody's children here."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil

LOOK_SECONDS = 0.05


def is_alive(process: psutil.Process) -> bool:
    """It may go at any moment; one that nobody has waited for is dead, too."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def outlasting(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended, and name those that have not by then.

    psutil's own wait_procs fails on Linux 6.18 where a process ends in the moment in which it is opened.
    """
    until, alive = time.monotonic() + seconds, list(processes)
    while (alive := [each for each in alive if is_alive(each)]) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return alive
