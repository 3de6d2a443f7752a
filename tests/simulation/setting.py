"""Where the simulation runs: in a process of its own, with what it needs on its path, and the same hashes each time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATH = [str(ROOT), str(ROOT / "spark_jobs"), str(ROOT / "tests" / "segments")]


def environment() -> dict[str, str]:
    """What a process of it is started with."""
    return {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(PATH), "PYTHONDONTWRITEBYTECODE": "1"}


def settle_in() -> None:
    """Start this program over where it was started in another environment."""
    wanted = environment()
    if any(os.environ.get(name) != wanted[name] for name in ("PYTHONHASHSEED", "PYTHONPATH")):
        os.chdir(ROOT)
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], wanted)
