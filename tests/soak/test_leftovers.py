"""What a soak leaves behind is found, planted in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.soak.leftovers import GROUPS, TOPICS, Leftovers

# The shell ends at once, and what it has started goes on without a parent.
PLANTS = """
import os, signal, subprocess, sys, time
from pathlib import Path
from tests.soak.leftovers import Leftovers
from tests.soak.processes import adopt_orphans, described, tree
folder = Path(sys.argv[1])
adopt_orphans()
if sys.argv[2] == "plant":
    subprocess.run(["sh", "-c", "sleep 987 >/dev/null 2>&1 &"], check=True)
    # It is a shell, too, until it has become what it is to be.
    while not any("(sleep" in described(pid) for pid, _ in tree(os.getpid())):
        time.sleep(0.01)
    (folder / "tmp" / "spark-1").mkdir()
    (folder / "tmp" / "spark-1" / "block").write_text("left")
leftovers = Leftovers(folder, patience=0)
leftovers.of_the_soak()
for pid, _ in tree(os.getpid()):
    os.kill(pid, signal.SIGKILL)
print(*leftovers.misses, sep="\\n")
"""
ROOT = Path(__file__).parents[2]


def misses(folder: Path, what: str) -> list[str]:
    (folder / "tmp").mkdir()
    command = [sys.executable, "-c", PLANTS, str(folder), what]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return told.stdout.split("\n")[:-1]


def test_an_orphan_and_a_file_are_found(tmp_path: Path) -> None:
    process, file = misses(tmp_path, "plant")
    assert process.startswith("1 processes outlive the soak: ")
    assert "(sleep 987)" in process
    assert file == "2 files are left in the temporary folder of the soak: spark-1, spark-1/block"


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert misses(tmp_path, "nothing") == [""]


def test_names_that_nobody_knows_are_found(tmp_path: Path) -> None:
    leftovers = Leftovers(tmp_path)
    leftovers.of_kafka(GROUPS, {*TOPICS, "__consumer_offsets"})
    assert leftovers.misses == []
    leftovers.of_kafka({*GROUPS, "soak.backfill.7"}, {*TOPICS, "soak.7"})
    assert leftovers.misses == ["1 groups are not known: soak.backfill.7", "1 topics are not known: soak.7"]
