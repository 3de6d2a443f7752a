"""Every process below this one: its role, its memory, its handles, its threads, as the kernel counts them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.soak.roles import role_of

PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_KB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class Process:
    """One process as it was at one moment. Memory is in KB."""

    pid: int
    role: str
    pss: int
    """Its share of the memory that it has with others, and all that it has alone."""
    uss: int
    """What it has alone."""
    peak: int
    """The most that it has had in memory in its life, shared or not."""
    handles: int
    threads: int


def adopt_orphans() -> None:
    """Make every process that loses its parent a child of this one: so nothing that outlives its parent gets lost."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def look(root: int) -> list[Process]:
    """All below `root` now; what ends meanwhile is left out."""
    found = []
    for pid, role in tree(root):
        # The memory of a process that has just ended is gone, though it is still listed.
        with contextlib.suppress(*_GONE):
            found.append(_process(pid, role))
    return found


def tree(root: int) -> Iterator[tuple[int, str]]:
    """The pids below `root` with their roles, parents first."""
    children: dict[int, list[int]] = {}
    for each in _PROC.iterdir():
        if each.name.isdigit():
            with contextlib.suppress(*_GONE):
                # The name, in parentheses, may hold anything.
                state, ppid = (each / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    children.setdefault(int(ppid), []).append(int(each.name))
    below = [(root, "soak")]
    while below:
        parent, role = below.pop()
        for pid in children.get(parent, ()):
            with contextlib.suppress(*_GONE):
                own = role_of(_command(pid), role)
                yield pid, own
                below.append((pid, own))


def described(pid: int) -> str:
    try:
        return f"{pid} ({' '.join(_command(pid))[:120]})"
    except _GONE:
        return f"{pid} (has ended since)"


def _process(pid: int, role: str) -> Process:
    folder = _PROC / str(pid)
    shares = _kilobytes(folder / "smaps_rollup")
    status = folder / "status"
    return Process(
        pid=pid,
        role=role,
        pss=shares["Pss"],
        uss=shares["Private_Clean"] + shares["Private_Dirty"],
        peak=_kilobytes(status)["VmHWM"],
        handles=len(os.listdir(folder / "fd")),
        threads=len(os.listdir(folder / "task")),
    )


def _kilobytes(file: Path) -> dict[str, int]:
    found = {name: int(number) for name, number in _KB.findall(file.read_text())}
    if not found:
        raise ProcessLookupError(f"{file} is of a process that has ended")
    return found


def _command(pid: int) -> list[str]:
    return [word for word in (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0") if word]
