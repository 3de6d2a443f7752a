"""Many schedules of the real engine over a model of Kafka, in processes of their own.

Those of this process hold the real clients. `make simulate` goes on for longer, and replays a seed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.promises.properties import PROPERTIES, SAME_BYTES
from tests.simulation.regressions import SEEDS
from tests.simulation.setting import ROOT, environment

SECONDS = 20
MOST_SECONDS = 300
READABLE_LINES = 100


def simulate(*options: str, module: str = "run") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"tests.simulation.{module}", *options]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )


def shrunk(said: str) -> str:
    """Return the schedule of the first seed that found something, as short as it gets."""
    seeds = re.findall(r"^SEED=(\d+)", said, re.MULTILINE)
    return simulate(seeds[0], module="shrink").stdout if seeds else ""


def test_nobody_breaks_a_promise() -> None:
    """With seeds that the header of each test run shows; `make simulate SEED=` replays one."""
    first = os.environ["SIMULATION_SEED"]
    done = simulate("--first", first, "--seeds", "1000000", "--seconds", str(SECONDS))
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{shrunk(done.stdout)}"
    assert int(re.findall(r"^(\d+) schedules", done.stdout, re.MULTILINE)[0]) > 0


def test_the_seeds_of_fixed_faults_find_nothing() -> None:
    for seed, wrong in SEEDS.items():
        done = simulate("--first", str(seed), "--seeds", "1")
        assert done.returncode == 0, f"{wrong}\n{done.stdout}{done.stderr}"


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Also in another process: that is what a replay relies on."""
    one, other = (simulate("--seed", "4").stdout for _ in range(2))
    assert one.count("\n") > 10
    assert one == other, SAME_BYTES.sentence


def test_a_seed_alone_is_no_other_than_among_others() -> None:
    """What came before it in a process leaves nothing behind."""
    among = simulate("--first", "20", "--seeds", "6", "--digests").stdout
    alone = simulate("--first", "25", "--seeds", "1", "--digests").stdout
    assert re.findall(r"^25 \w+", among, re.MULTILINE) == re.findall(r"^25 \w+", alone, re.MULTILINE) != []


def test_a_fault_that_is_planted_is_noticed_in_a_schedule_that_a_person_can_read() -> None:
    """Otherwise schedules that find nothing would mean nothing."""
    done = simulate(module="planted")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) > 10
    shrunk = re.findall(r"(\d+) lines, shrunk to (\d+)", done.stdout)
    assert len(shrunk) == len(done.stdout.splitlines())
    assert max(int(after) for _, after in shrunk) < READABLE_LINES
    assert any(int(after) < int(before) / 3 for before, after in shrunk)


def test_promises_have_names_of_their_own() -> None:
    assert [each.name for each in PROPERTIES] == [f"I{number}" for number in range(1, len(PROPERTIES) + 1)]
