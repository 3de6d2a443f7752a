"""Who takes part. Each does a job in a session that is up; some also in a whole submit."""

from __future__ import annotations

from typing import Protocol

from bench.work import Job


class Contestant(Protocol):
    """A way to do a job. All times are seconds."""

    @property
    def name(self) -> str:
        """How works, bars and the report call it."""

    def start(self) -> None:
        """Bring a session up. It burns no CPU while it is not asked to run."""

    def run(self, job: Job) -> float:
        """Warm: one job in the session."""

    def check(self, job: Job) -> None:
        """Raise unless the job was done as this contestant promises it."""

    def close(self) -> None:
        """End the session, if there is one."""


class Submitter(Contestant, Protocol):
    """A contestant that can be started for one job only."""

    def submit(self, job: Job) -> float:
        """Cold: a whole submit, from the start of its process to its end."""
