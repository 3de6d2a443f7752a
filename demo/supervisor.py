"""Supervisor of a program that has many processes: it ends all of them when its parent ends.

Run as `python -m ...supervisor <programs as JSON>` with a pipe as stdin. The end of the pipe is the order to end
everything: the parent closes it, or Linux does because the parent was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from airflow_provider_kpipe.sandbox.errors import tail

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_SECONDS = 6.0
ASK_AGAIN_SECONDS = 1.5
LOOK_SECONDS = 0.1

Command = list[str]


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs to run: first some to their end, one after the other, then services, all at once."""

    first: Mapping[str, Command]
    services: Mapping[str, Command]

    def to_text(self) -> str:
        return json.dumps({"first": dict(self.first), "services": dict(self.services)})

    @classmethod
    def from_text(cls, text: str) -> Programs:
        return cls(**json.loads(text))


def log_of(name: str) -> Path:
    """Return the file for a program's output, in the working directory."""
    return Path(f"{name}.log")


def main(programs: Programs) -> None:
    """Run until stdin is closed or a program fails; end all processes either way."""
    if sys.platform == "linux":
        # A process that loses its parent becomes a child of this one, which can find and end it.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _exit)
    try:
        for name, command in programs.first.items():
            _watch({_start(name, command): name}, may_end=True)
        _watch({_start(name, command): name for name, command in programs.services.items()}, may_end=False)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants(PATIENCE_SECONDS)


def end_descendants(patience: float) -> None:
    """Ask every process below this one to end, insist after a while, and return when none is left."""
    asked_at: dict[psutil.Process, float] = {}
    deadline = time.monotonic() + patience
    while True:
        _reap()
        running = psutil.Process().children(recursive=True)
        if not running:
            return
        now = time.monotonic()
        for each in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                if now > deadline:
                    each.kill()
                elif now - asked_at.get(each, -ASK_AGAIN_SECONDS) >= ASK_AGAIN_SECONDS:
                    # Airflow's scheduler may swallow the first request, and run on.
                    each.terminate()
                    asked_at[each] = now
        time.sleep(LOOK_SECONDS / 2)


def _start(name: str, command: Command) -> int:
    # Not `subprocess`, which would reap children too, in competition with `_reap`.
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log_of(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        # Python ignores these two signals, and an ignored signal stays ignored in children.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def _watch(names: dict[int, str], *, may_end: bool) -> None:
    """Return when all have ended well. Exit when one ends otherwise, or when the parent closes stdin or is gone."""
    while names:
        if select.select([0], [], [], LOOK_SECONDS)[0] and not os.read(0, 1):
            sys.exit()
        for pid, code in _reap().items():
            name = names.pop(pid, None)
            if name is not None and (code != 0 or not may_end):
                said = tail(log_of(name).read_text(errors="replace"))
                sys.exit(f"{name} ended by itself with exit code {code}. The end of its log:\n{said}")


def _reap() -> dict[int, int]:
    """Return the exit codes of the children that have ended since the last call, by pid."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended


def _exit(number: int, frame: object) -> None:
    sys.exit()


if __name__ == "__main__":
    main(Programs.from_text(sys.argv[1]))
