"""Child processes that do not outlive this one."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

_LAUNCHER = Path(__file__).parent.with_name("die_with_parent.py")


def start(command: Sequence[str], *, folder: Path, output: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """Start `command` in `folder`, with stdout and stderr going to `output`.

    On Linux the child is killed when this process ends, however it ends. The child gets a session of its own: a
    Ctrl-C in the terminal reaches only this process, which then stops its children in the right order.
    """
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]

    def spawn() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    return _starter(os.getpid()).submit(spawn).result()


def run(command: Sequence[str], *, folder: Path, timeout: float) -> tuple[int, str]:
    """Run `command` to its end; return its exit code, and stdout and stderr as one text."""
    process = start(command, folder=folder, output=subprocess.PIPE)
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return process.returncode, output.decode(errors="replace")


@functools.cache
def _starter(pid: int) -> ThreadPoolExecutor:
    """Return the one thread that starts every child: Linux counts the starting *thread* as the parent.

    A child started by a short-lived thread would be killed when that thread ends; this thread stays until
    the interpreter exits. Each pid has its own, because a fork does not inherit threads.
    """
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"kpipe-starter-{pid}")
