"""Whether records are admitted: not while what came of the last ones waits too long to be written."""

from __future__ import annotations

import time
from collections.abc import Callable

# A full queue empties in less than this where a broker takes what it is given.
PATIENCE_SECONDS = 1.0


class Admission:
    """Pauses reading once output has waited too long, and resumes it when the output has drained."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume
        self._waits_since: float | None = None
        self.paused = False

    def output_waits(self) -> None:
        """Called again and again while it does."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        elif not self.paused and now - self._waits_since > PATIENCE_SECONDS:
            self.paused = True
            self._pause()

    def output_flows(self) -> None:
        self._waits_since = None
        if self.paused:
            self.paused = False
            self._resume()
