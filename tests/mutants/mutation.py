"""A small change to the source that makes it wrong, and the tests that should say so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE, ENGINE = "airflow_provider_kpipe", "spark_jobs/kpipe_engine"


class StaleMutationError(ValueError):
    """The source has changed, and the mutation with it no more."""


@dataclass(frozen=True)
class Mutation:
    """One replacement of a text that is in its file exactly once."""

    name: str
    """What a user of the mutant would suffer."""
    file: str
    old: str
    new: str
    tests: str
    """What pytest is to run, apart by blanks."""

    def applied(self, source: str) -> str:
        found = source.count(self.old)
        if found != 1:
            raise StaleMutationError(
                f"{self.name!r}: {self.old!r} is {found} times in {self.file}, and not once: write the mutation anew "
                "in tests/mutants, for the source as it is now"
            )
        return source.replace(self.old, self.new)
