from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from kpipe_engine import memory_limit as module
from kpipe_engine.memory_limit import room_for_a_client

GIGABYTE_TOO_MANY = """
import resource
from kpipe_engine.memory_limit import limit_memory
limit_memory({limit})
try:
    print(len(bytearray(2**30)))
except MemoryError:
    print("refused", resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


@pytest.mark.parametrize(("limit", "said"), [(512, f"refused {512 * 2**20}"), (None, f"{2**30}")])
def test_a_worker_gets_no_more_memory_than_it_may_have(limit: int | None, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GIGABYTE_TOO_MANY.format(limit=limit)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert done.stdout.strip() == said


class FakeLimits:
    """The limits of a process on its data: the one that holds, and the highest that it may set."""

    RLIMIT_DATA, RLIM_INFINITY = resource.RLIMIT_DATA, resource.RLIM_INFINITY

    def __init__(self, limit: int, most: int) -> None:
        self.held = limit, most

    def getrlimit(self, of: int) -> tuple[int, int]:
        assert of == self.RLIMIT_DATA
        return self.held

    def setrlimit(self, of: int, limits: tuple[int, int]) -> None:
        assert of == self.RLIMIT_DATA
        self.held = limits


MEGABYTE = 2**20
NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limit", "most", "left"),
    [
        (512 * MEGABYTE, NO_LIMIT, 576 * MEGABYTE),
        (512 * MEGABYTE, 520 * MEGABYTE, 520 * MEGABYTE),
        (NO_LIMIT, NO_LIMIT, NO_LIMIT),
    ],
    ids=["raised", "raised as far as allowed", "no limit"],
)
def test_a_client_that_opens_has_room_and_leaves_its_share(
    monkeypatch: pytest.MonkeyPatch, limit: int, most: int, left: int
) -> None:
    limits = FakeLimits(limit, most)
    monkeypatch.setattr(module, "resource", limits)
    with room_for_a_client():
        assert limits.held == (most, most)
    assert limits.held == (left, most)
