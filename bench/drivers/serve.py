"""The driver's end of a warm session. It runs in every contestant's environment: standard library only."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Run = Callable[[dict[str, Any]], dict[str, Any]]


def serve(open_session: Callable[[], Run]) -> None:
    """Answer each request with the seconds that it took, until stdin is closed."""
    # All other output to stdout, also the JVM's, goes to stderr: stdout holds only the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    run = open_session()
    say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        begin = time.perf_counter()
        answer = run(request)
        say({**answer, "seconds": time.perf_counter() - begin})
