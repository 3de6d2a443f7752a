"""The script between a parent and its child, run as the package runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil

from airflow_provider_kpipe import die_with_parent
from tests.kit.processes import outlasting

SCRIPT = die_with_parent.__file__
PARENT = """
import os, subprocess, sys
child = subprocess.Popen(
    [sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), "sleep", "600"], stdout=subprocess.DEVNULL
)
print(child.pid)
"""


def run(parent: int, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT, str(parent), *command], capture_output=True, text=True, check=False
    )


def test_it_becomes_the_command_with_its_arguments_and_its_exit_code() -> None:
    done = run(os.getpid(), "sh", "-c", 'echo "$0 $1"; exit 3', "one", "two words")
    assert (done.stdout, done.returncode) == ("one two words\n", 3)


def test_the_command_does_not_inherit_the_signals_that_python_ignores() -> None:
    said = run(os.getpid(), "grep", "SigIgn", "/proc/self/status").stdout
    ignored = int(said.split()[1], 16)
    assert [name for name in (signal.SIGPIPE, signal.SIGXFSZ) if ignored & 1 << name - 1] == []


def test_a_parent_that_is_gone_already_gets_no_child() -> None:
    done = run(os.getpid() + 1, "echo", "started")
    assert (done.stdout, done.returncode) == ("", 1)
    assert f"parent {os.getpid() + 1} is gone: not starting echo" in done.stderr


def test_the_command_ends_with_its_parent() -> None:
    parent = subprocess.run([sys.executable, "-c", PARENT, SCRIPT], capture_output=True, text=True, check=True)
    try:
        child = psutil.Process(int(parent.stdout))
    except psutil.NoSuchProcess:
        return
    assert outlasting([child], 60) == []
