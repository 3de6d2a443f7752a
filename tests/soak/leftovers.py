"""What must not be there any more: processes, temporary files, names in Kafka that nobody knows."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from tests.soak.processes import described, tree
from tests.soak.roles import OF_RUNS
from tests.soak.sampler import files_below

MOST_NAMED = 10
# What one pipeline and its redrives make, however many runs there are.
GROUPS = {
    "soak",
    "soak.kpipe",
    "soak.kpipe.published",
    "soak.kpipe.sequence",
    # Under this name, all redrives of one dead-letter topic work.
    "kpipe.redrive.soak.dead.kpipe",
    "kpipe.redrive.soak.dead.kpipe.sequence",
}
TOPICS = {"soak", "soak.out", "soak.dead", "soak.dead.redriven", "soak.parked"}
KAFKAS_OWN = "__"


class Leftovers:
    """Looks for them, and keeps what it has found as misses."""

    def __init__(self, folder: Path, *, patience: float = 15.0) -> None:
        self._folder = folder
        self._patience = patience
        self.misses: list[str] = []

    def of_runs(self, home: Path) -> None:
        """When no run is under way, none of its processes is there, and nothing in the temporary folder."""
        self._note("processes outlive their run", self._still_there(OF_RUNS))
        self._note("files are left in the temporary folder of Airflow", _names(home / "tmp"))

    def of_kafka(self, groups: Iterable[str], topics: Iterable[str]) -> None:
        self._note("groups are not known", set(groups) - GROUPS)
        self._note("topics are not known", {each for each in topics if not each.startswith(KAFKAS_OWN)} - TOPICS)

    def of_the_soak(self) -> None:
        """When everything is stopped, nothing is there."""
        self._note("processes outlive the soak", self._still_there())
        self._note("files are left in the temporary folder of the soak", _names(self._folder / "tmp"))

    def _still_there(self, roles: Collection[str] | None = None) -> list[str]:
        """The processes of some roles, or all, that do not end by themselves within a while."""
        deadline = time.monotonic() + self._patience
        while left := [pid for pid, role in tree(os.getpid()) if roles is None or role in roles]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return [described(pid) for pid in left]

    def _note(self, what: str, names: Iterable[str]) -> None:
        found = sorted(names)
        if found:
            self.misses.append(f"{len(found)} {what}: {', '.join(found[:MOST_NAMED])}")


def _names(folder: Path) -> list[str]:
    return [str(each.relative_to(folder)) for each in files_below(folder)]
