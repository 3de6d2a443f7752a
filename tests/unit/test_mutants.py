"""The mutations of `make mutants` fit the sources as they are."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.kit.jobs import wait_for
from tests.kit.processes import outlasting
from tests.mutants.mutation import ROOT, Mutation, StaleMutationError
from tests.mutants.mutations import MOST_SURVIVORS, MUTATIONS, SURVIVORS
from tests.mutants.run import copy_of_the_tree, run_tests, summed_up


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_one_place_and_leaves_python(mutation: Mutation) -> None:
    source = (ROOT / mutation.file).read_text()
    mutated = mutation.applied(source)
    assert mutated != source
    compile(mutated, mutation.file, "exec")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_tests_that_should_notice_it_are_there(mutation: Mutation) -> None:
    files, _, _ = mutation.tests.partition(" -k ")
    assert [name for name in files.split() if not (ROOT / name).is_file()] == []


def test_there_are_many_under_names_of_their_own() -> None:
    assert len(MUTATIONS) >= 60
    assert [name for name, times in Counter(each.name for each in MUTATIONS).items() if times > 1] == []


def test_those_that_may_survive_are_few_and_known() -> None:
    assert len(SURVIVORS) <= MOST_SURVIVORS
    assert SURVIVORS.keys() <= {each.name for each in MUTATIONS}


@pytest.mark.parametrize("source", ["nothing of it", "a a"], ids=["none", "two"])
def test_one_that_does_not_fit_says_so(source: str) -> None:
    with pytest.raises(StaleMutationError, match="write the mutation anew"):
        Mutation("stale", "file.py", "a", "b", "tests").applied(source)


def test_a_survivor_that_nobody_explained_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = MUTATIONS[:2]
    assert summed_up([(one, "killed"), (other, "killed by the clock")]) == 0
    assert summed_up([(one, "killed"), (other, "SURVIVED")]) == 1
    assert f"2 mutants, 1 survive\n  {other.name}: no test notices it" in capsys.readouterr().out


def test_a_copy_holds_what_the_tests_need(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "tree")
    assert all((tree / each.file).is_file() for each in MUTATIONS)
    assert (tree / "pyproject.toml").is_file()


HANGS = """
import pathlib
import subprocess
import sys

def test_that_hangs():
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pathlib.Path("pid").write_text(str(started.pid))
    started.wait()
"""


def test_processes_of_a_hanging_test_end_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_hangs.py").write_text(HANGS)
    told = tmp_path / "pid"

    def take_too_long(_: object, timeout: float) -> None:
        wait_for(lambda: told.exists() and told.read_text() != "", "what the test starts")
        raise subprocess.TimeoutExpired("pytest", timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", take_too_long)
    with pytest.raises(subprocess.TimeoutExpired):
        run_tests(tmp_path, "test_hangs.py", seconds=240)
    pid = int(told.read_text())
    left = [psutil.Process(pid)] if psutil.pid_exists(pid) else []
    assert outlasting(left, 30) == []
