"""Makes the sources wrong, one mutation of `make mutants` at a time: which does the simulation alone notice?"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutation import ENGINE, PACKAGE, Mutation
from tests.mutants.mutations import MUTATIONS
from tests.mutants.run import copy_of_the_tree
from tests.simulation.survivors import SURVIVORS

SECONDS = 60
PATIENCE = 10.0
"""How many times as long it may take on a host that is busy."""
FIRST_SEED = 2_000_000
NOTICED, ALIVE = 1, 0

SIMULATED = (
    *(f"{PACKAGE}/contract/progress/{name}.py" for name in ("standing", "resuming", "publishing", "open_writers")),
    *(f"{PACKAGE}/contract/offsets/{name}.py" for name in ("completed", "limits", "ranges")),
    *(f"{PACKAGE}/contract/{name}.py" for name in ("plan", "kafka_names", "redrive/redrive")),
    *(f"{PACKAGE}/{name}.py" for name in ("planning/ranges", "checkpointing/committer", "running/attempts")),
    f"{PACKAGE}/running/stop_requests.py",
    *(f"{PACKAGE}/transactions/{name}.py" for name in ("offset_transaction", "sequence", "left_open")),
    *(f"{PACKAGE}/kafka/{name}.py" for name in ("positions", "held_offsets")),
    *(
        f"{ENGINE}/{name}.py"
        for name in ("partition_worker", "chunk_filler", "chunk_retry", "bounded_calls", "stop_signal")
    ),
    *(
        f"{ENGINE}/reading/{name}.py"
        for name in ("range_reader", "shared_consumer", "held_offsets", "chunk", "details_group")
    ),
    *(
        f"{ENGINE}/assignment/{name}.py"
        for name in ("claiming", "progress_store", "assignment", "range_state", "last_words")
    ),
    *(f"{ENGINE}/writing/{name}.py" for name in ("chunk_writer", "producer_session", "outputs", "destination")),
    *(f"{ENGINE}/faults/{name}.py" for name in ("dead_letter_topic", "fault_handler")),
    *(f"{ENGINE}/processing/{name}.py" for name in ("sequential", "concurrent", "copying", "retries")),
    *(f"{ENGINE}/redrive/{name}.py" for name in ("processor", "ledger", "refaulted")),
)
"""Sources that the simulation runs, and whose mutations it may notice. `survivors.py` says why not the others."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="some of the mutations, by words of their names")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the processor, for each")
    chosen = parser.parse_args(arguments)
    return go_through(chosen.words, chosen.seconds)


def go_through(words: Sequence[str], seconds: float) -> int:
    mutations = [each for each in MUTATIONS if each.file in SIMULATED]
    mutations = [each for each in mutations if not words or any(word in each.name for word in words)]
    alive = []
    with tempfile.TemporaryDirectory(prefix="kpipe-simulated-mutants-") as folder:
        tree = copy_of_the_tree(Path(folder) / "tree")
        if outcome_in(tree, seconds / 3) != ALIVE:
            say("The simulation finds something without any mutation: fix that first")
            return 1
        for each in mutations:
            begun = time.monotonic()
            noticed = is_noticed(each, tree, seconds)
            say(f"{'killed' if noticed else 'LIVES ':8}{time.monotonic() - begun:5.0f} s  {each.name}")
            if not noticed:
                alive.append(each)
    return summed_up(mutations, alive)


def is_noticed(mutation: Mutation, tree: Path, seconds: float) -> bool:
    file = tree / mutation.file
    source = file.read_text()
    try:
        file.write_text(mutation.applied(source))
        return outcome_in(tree, seconds) != ALIVE
    finally:
        file.write_text(source)


def outcome_in(tree: Path, seconds: float) -> int:
    """What becomes of schedules; of one that has no end, that it was noticed."""
    options = ["--first", str(FIRST_SEED), "--seeds", "1000000", "--seconds", str(seconds), "--until-anomaly"]
    command = [sys.executable, "-m", "tests.simulation.run", *options]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=(seconds + 5) * PATIENCE)
    except subprocess.TimeoutExpired:
        return NOTICED
    for line in done.stdout.splitlines():
        if line.startswith("SEED="):
            say(f"          {line[:200]}")
    return done.returncode


def summed_up(mutations: Sequence[Mutation], alive: Sequence[Mutation]) -> int:
    say(f"\n{len(mutations)} mutants, {len(mutations) - len(alive)} killed by the simulation alone")
    for each in alive:
        say(f"  {each.name}: {SURVIVORS.get(each.name, 'it lives, and nobody has said why')}")
    return 1 if any(each.name not in SURVIVORS for each in alive) else 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
