from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
