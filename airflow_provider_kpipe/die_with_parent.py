"""A script that becomes the given command, after asking Linux to kill it when its parent ends.

Run as `python die_with_parent.py <parent pid> <command>...`. It runs between the parent and the command,
because the usual place for this, `preexec_fn`, may deadlock in a parent that has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Arm the signal, then replace this process; the pid stays the same."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # the parent ended before the signal was armed, so no signal will come
        sys.exit(f"parent {parent} is gone: not starting {command[0]}")
    # Python ignores these two signals, and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
