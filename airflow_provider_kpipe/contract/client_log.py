"""The log of Kafka clients: each cause once in a while, and whether a connection was lost."""

from __future__ import annotations

import logging
import re
import threading
import time

log = logging.getLogger("kpipe.kafka")

AGAIN_SECONDS = 60.0
MOST_CAUSES = 1_000

# "[thrd:main]: 127.0.0.1:9092/1: Connect to ... failed: Connection refused (after 0ms in state CONNECT)"
_WHO = re.compile(r"^(\[thrd:.*?\]: )?(\S+: )*")
_DETAILS = re.compile(r" \(after .*", re.DOTALL)
# In these states, a client has sent only requests that open the connection.
_OPENING = re.compile(r"in state (INIT|DOWN|TRY_CONNECT|CONNECT|SSL_HANDSHAKE|AUTH_\w+|APIVERSION_QUERY)\b")


class Causes:
    """Log of causes: each at once, and again after `AGAIN_SECONDS`, with the number of repetitions meanwhile.

    A broker that is down causes a line for each try of each client.
    """

    def __init__(self) -> None:
        self._told: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def tell(self, level: int, text: str) -> None:
        cause, now = _DETAILS.sub("", _WHO.sub("", text)), time.monotonic()
        with self._lock:
            told_at, silenced = self._told.get(cause, (None, 0))
            if told_at is not None and now - told_at < AGAIN_SECONDS:
                self._told[cause] = (told_at, silenced + 1)
                return
            if len(self._told) >= MOST_CAUSES:
                self._told.clear()
            self._told[cause] = (now, 0)
        log.log(level, "%s%s", text, f" (and {silenced} times more since it was last logged)" if silenced else "")


CAUSES = Causes()


class ClientLog:
    """Stand-in for a client's logger. Its lines arrive when the client is polled."""

    def __init__(self) -> None:
        self.lost_connection = False
        """True once a connection that may have carried requests is closed. Clients log each only with debug=broker."""

    def log(self, level: int, _form: str, facility: str, _client: str, text: str) -> None:
        if facility == "FAIL" and not _OPENING.search(text):
            self.lost_connection = True
        if level >= logging.INFO:
            CAUSES.tell(level, text)
