"""Applies one mutation at a time to a copy of the sources, and says which of them no test notices."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutation import ROOT, Mutation
from tests.mutants.mutations import MOST_SURVIVORS, MUTATIONS, SURVIVORS

AT_ONCE = 2
SECONDS = 240
COPIED = ("airflow_provider_kpipe", "spark_jobs", "dags", "tests", "docs", "README.md", "pyproject.toml")
PASSED, FAILED = 0, 1


def main(chosen: Sequence[str]) -> int:
    mutations = [each for each in MUTATIONS if not chosen or any(word in each.name for word in chosen)]
    if not passes_without(mutations):
        say("The tests fail without any mutation: fix them first")
        return 1
    with tempfile.TemporaryDirectory(prefix="kpipe-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(AT_ONCE):
            trees.put(copy_of_the_tree(Path(folder) / str(number)))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            outcomes = list(threads.map(lambda each: (each, outcome_of(each, trees)), mutations))
    return summed_up(outcomes)


def passes_without(mutations: Iterable[Mutation]) -> bool:
    """What fails without a mutation would kill every mutant."""
    files = {word for each in mutations for word in each.tests.split(" -k ")[0].split()}
    return run_tests(ROOT, " ".join(sorted(files)), seconds=None) == PASSED


def copy_of_the_tree(target: Path) -> Path:
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)
    return target


def outcome_of(mutation: Mutation, trees: SimpleQueue[Path]) -> str:
    tree = trees.get()
    file = tree / mutation.file
    source = file.read_text()
    try:
        file.write_text(mutation.applied(source))
        outcome = {PASSED: "SURVIVED", FAILED: "killed"}.get(run_tests(tree, mutation.tests), "not tested")
    except subprocess.TimeoutExpired:
        outcome = "killed by the clock"
    finally:
        file.write_text(source)
        trees.put(tree)
    say(f"{outcome:20}{mutation.name}")
    return outcome


def run_tests(tree: Path, tests: str, seconds: float | None = SECONDS) -> int:
    """Return the exit code of pytest. Tests that take too long are ended with all that they have started."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as running:
        try:
            output, errors = running.communicate(timeout=seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    if running.returncode not in (PASSED, FAILED):
        say(output[-2_000:] + errors[-2_000:])
    return running.returncode


def summed_up(outcomes: Sequence[tuple[Mutation, str]]) -> int:
    survivors = [mutation.name for mutation, outcome in outcomes if not outcome.startswith("killed")]
    say(f"\n{len(outcomes)} mutants, {len(survivors)} survive")
    for name in survivors:
        say(f"  {name}: {SURVIVORS.get(name, 'no test notices it, and nobody has said why')}")
    unexplained = [name for name in survivors if name not in SURVIVORS]
    return 1 if unexplained or len(survivors) > MOST_SURVIVORS else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
