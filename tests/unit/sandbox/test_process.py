"""Child processes that do not outlive this one; real ones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from airflow_provider_kpipe.sandbox import process
from tests.kit.processes import outlasting

WHERE = "import os, sys; print(os.getcwd(), os.getsid(0) == os.getpid()); sys.stderr.write('aside'); sys.exit(3)"


def test_a_command_runs_in_its_folder_and_in_a_session_of_its_own(tmp_path: Path) -> None:
    code, output = process.run([sys.executable, "-c", WHERE], folder=tmp_path, timeout=60)
    assert code == 3
    assert sorted(output.replace("aside", "").split()) == sorted([str(tmp_path.resolve()), "True"])
    assert "aside" in output


def test_output_that_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    assert process.run(["printf", r"a\377b"], folder=tmp_path, timeout=60) == (0, "a\N{REPLACEMENT CHARACTER}b")


def test_a_command_that_is_late_is_killed(tmp_path: Path) -> None:
    before = {each.pid for each in psutil.Process().children()}
    with pytest.raises(subprocess.TimeoutExpired):
        process.run(["sleep", "600"], folder=tmp_path, timeout=0.1)
    assert {each.pid for each in psutil.Process().children()} <= before


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        child = process.start(["sh", "-c", "echo ready; exec sleep 600"], folder=tmp_path, output=subprocess.PIPE)
        started.append(child)
        assert child.stdout is not None
        child.stdout.readline()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    (child,) = started
    with child:
        assert outlasting([psutil.Process(child.pid)], 0.2) != []
        child.kill()


PARENT = """
import subprocess, sys
from pathlib import Path
from airflow_provider_kpipe.sandbox import process

print(process.start(["sleep", "600"], folder=Path(sys.argv[1]), output=subprocess.DEVNULL).pid, flush=True)
sys.stdin.read()
"""


def test_a_child_ends_with_this_process_however_that_ends(tmp_path: Path) -> None:
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings,
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    assert outlasting([child], 60) == []
