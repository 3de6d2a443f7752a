from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from demo.supervisor import Programs
from tests.kit.processes import outlasting

# A grandchild in a session of its own that does not care for SIGTERM, and whose parent is gone.
STUBBORN = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork():
        os._exit(0)
    open("grandchild", "w").write(str(os.getpid()))
else:
    os.wait()
    open("settled", "w").close()
time.sleep(600)
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


SLEEP = python("import time; time.sleep(600)")


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


def command(programs: Programs) -> list[str]:
    # Less patience than for Airflow, whose processes have something to finish.
    code = "import sys; from demo import supervisor as s; s.PATIENCE_SECONDS = 0.5; "
    return [sys.executable, "-c", f"{code}s.main(s.Programs.from_text(sys.argv[1]))", programs.to_text()]


@contextmanager
def supervised(folder: Path, programs: Programs) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command(programs), cwd=folder, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as supervisor:
        try:
            yield supervisor
        finally:
            below = psutil.Process(supervisor.pid).children(recursive=True) if supervisor.poll() is None else []
            supervisor.kill()
            for each in below:
                each.kill()


def all_gone(processes: list[psutil.Process]) -> bool:
    return not outlasting(processes, 60)


def started(folder: Path, supervisor: int) -> list[psutil.Process]:
    """Everything below the supervisor, once the stubborn grandchild is there."""
    wait_for(lambda: (folder / "settled").exists() and (folder / "grandchild").exists())
    wait_for((folder / "grandchild").read_text)
    below = psutil.Process(supervisor).children(recursive=True)
    assert int((folder / "grandchild").read_text()) in {each.pid for each in below}
    assert len(below) == 3, "one, two, and the grandchild of two"
    return below


@pytest.mark.parametrize("end", ["close stdin", "SIGTERM"])
def test_told_to_end_it_leaves_nothing(tmp_path: Path, end: str) -> None:
    with supervised(tmp_path, Programs({}, {"one": SLEEP, "two": python(STUBBORN)})) as supervisor:
        below = started(tmp_path, supervisor.pid)
        if end == "SIGTERM":
            supervisor.terminate()
        elif supervisor.stdin:
            supervisor.stdin.close()
        assert supervisor.wait(60) == 0
        assert not any(each.is_running() for each in below)


def test_when_the_parent_is_killed_nothing_is_left(tmp_path: Path) -> None:
    programs = Programs({}, {"one": SLEEP, "two": python(STUBBORN)})
    starter = (
        "import subprocess, sys, time; p = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); "
        "print(p.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([*python(starter), *command(programs)], cwd=tmp_path, stdout=subprocess.PIPE) as parent:
        supervisor = psutil.Process(int(parent.stdout.readline())) if parent.stdout else psutil.Process()
        family = [supervisor, *started(tmp_path, supervisor.pid)]
        parent.kill()
        assert all_gone(family)


def test_first_programs_run_one_after_the_other_before_the_services(tmp_path: Path) -> None:
    note = "open('order', 'a').write('{0}')"
    programs = Programs(
        {"a": python(note.format("a")), "b": python(note.format("b"))}, {"c": python(f"{note.format('c')}; {STUBBORN}")}
    )
    with supervised(tmp_path, programs) as supervisor:
        wait_for((tmp_path / "settled").exists)
        assert (tmp_path / "order").read_text() == "abc"
        assert supervisor.poll() is None


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        (
            Programs({"migrate": python("print('no room'); raise SystemExit(3)")}, {"one": SLEEP}),
            "migrate ended by itself with exit code 3. The end of its log:\n    no room\n",
        ),
        (
            Programs({}, {"one": SLEEP, "two": python("print('bye')")}),
            "two ended by itself with exit code 0. The end of its log:\n    bye\n",
        ),
    ],
)
def test_a_program_that_ends_by_itself_ends_all_and_says_why(tmp_path: Path, programs: Programs, said: str) -> None:
    with supervised(tmp_path, programs) as supervisor:
        assert supervisor.wait(60) == 1
        assert supervisor.stderr is not None
        assert supervisor.stderr.read() == said


def test_a_killed_service_is_noticed(tmp_path: Path) -> None:
    with supervised(tmp_path, Programs({}, {"one": SLEEP, "two": python(STUBBORN)})) as supervisor:
        below = started(tmp_path, supervisor.pid)
        victim = next(each for each in below if each.cmdline() == SLEEP)
        os.kill(victim.pid, signal.SIGKILL)
        assert supervisor.wait(60) == 1
        assert not any(each.is_running() for each in below)
