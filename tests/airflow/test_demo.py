"""`make demo`, for real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from demo import orders

DEMO_SECONDS = 240


def test_it_ends_well_with_every_number_as_seeded_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--once"],
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if ", each exactly once;" not in line]
    for seed in orders.seeds():
        good, poison, records = f"{seed.good:,}", f"{seed.poison:,}", f"{seed.records:,}"
        row = [str(seed.partition), "[0;", f"{records})", good, poison, good, poison, records, "0"]
        assert row in rows, done.stdout
    assert "Every number is as seeded: 199,300 orders written, each exactly once; 700 in the dead" in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []
