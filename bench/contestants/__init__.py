"""The contestants. Each does a job in a running session; some do it in a whole submit too."""

from __future__ import annotations

from typing import Protocol

from bench.work import Job


class Contestant(Protocol):
    """A way to do a job. All times are seconds."""

    @property
    def name(self) -> str:
        """The name of the contestant in works, bars and the report."""

    def start(self) -> None:
        """Start a session. It uses no CPU until it is asked to run a job."""

    def run(self, job: Job) -> float:
        """Do one job in the session (warm); return the seconds."""

    def check(self, job: Job) -> None:
        """Raise unless the output is as this contestant promises."""

    def close(self) -> None:
        """End the session, if there is one."""


class Submitter(Contestant, Protocol):
    """A contestant that can be started for one job only."""

    def submit(self, job: Job) -> float:
        """Do one job by a whole submit (cold); return the seconds from the start of its process to its end."""
