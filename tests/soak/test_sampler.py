"""A sampler writes down what is there, and says what keeps it from that."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak.sampler import Sampler, count_files, files_below, read_samples

PATIENCE_SECONDS = 30


def wait_for(come: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not come():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_writes_a_line_for_each_look_with_the_processes_and_the_counts(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    command = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()", "pyspark.daemon"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker:
        with Sampler(file, lambda: Counter(groups=3), seconds=0.01):
            wait_for(lambda: file.exists() and file.stat().st_size > 0)
        worker.communicate()
    samples = read_samples(file)
    assert {tuple(each.counts.items()) for each in samples} == {(("groups", 3),)}
    assert worker.pid in [each.pid for sample in samples for each in sample.processes if each.role == "python worker"]


def test_an_error_of_the_sampler_is_raised_in_the_end(tmp_path: Path) -> None:
    def refuse() -> dict[str, int]:
        refused.append(True)
        raise OSError("the broker is gone")

    refused: list[bool] = []

    def soak() -> None:
        with Sampler(tmp_path / "samples.jsonl", refuse, seconds=0.01):
            wait_for(lambda: bool(refused))

    with pytest.raises(OSError, match="the broker is gone"):
        soak()


def test_files_are_counted_without_some_folders(tmp_path: Path) -> None:
    (tmp_path / "logs" / "run").mkdir(parents=True)
    (tmp_path / "other" / "logs").mkdir(parents=True)
    assert {str(each.relative_to(tmp_path)) for each in files_below(tmp_path, "logs")} == {"other", "other/logs"}
    assert count_files(tmp_path) == 4
