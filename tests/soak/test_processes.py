"""Looks at processes that are really there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.soak.processes import Process, described, look

HOLDS = """
import sys, threading
files = [open("/dev/null") for _ in range(int(sys.argv[1]))]
memory = b"x" * (int(sys.argv[2]) << 20)
stop = threading.Event()
threads = [threading.Thread(target=stop.wait, daemon=True) for _ in range(int(sys.argv[3]))]
for each in threads: each.start()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def child(handles: int = 0, megabytes: int = 0, threads: int = 0) -> Iterator[Process]:
    """How a process looks that holds so much."""
    numbers = [str(each) for each in (handles, megabytes, threads)]
    command = [sys.executable, "-S", "-c", HOLDS, *numbers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (found,) = [each for each in look(os.getpid()) if each.pid == process.pid]
        yield found
        process.communicate()


def test_a_process_shows_its_handles_threads_and_memory() -> None:
    with child() as less, child(handles=9, megabytes=30, threads=4) as more:
        assert more.handles - less.handles == 9
        assert more.threads - less.threads == 4
        for name in ("pss", "uss", "peak"):
            assert 25 << 10 < getattr(more, name) - getattr(less, name) < 40 << 10
    assert described(more.pid) == f"{more.pid} (has ended since)"
    assert more.pid not in [each.pid for each in look(os.getpid())]
