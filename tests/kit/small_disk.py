"""A file system of a few megabytes that can be filled to its last byte."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BALLAST = "ballast"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mounted inside the block. Where nobody may mount, the test is skipped."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"only root may mount a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        # Whatever still holds a file of it keeps its memory, and nothing else.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(disk: Path) -> None:
    """Leave no byte of it to anybody else."""
    with (disk / _BALLAST).open("ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


def make_room(disk: Path) -> None:
    (disk / _BALLAST).unlink()
