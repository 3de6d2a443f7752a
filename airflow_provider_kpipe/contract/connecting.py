"""How every Kafka client of ours connects, and tells what ails it, on Airflow's side and on Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_kpipe.contract.client_log import ClientLog

# A client turns from the address it was given to the broker that answers there, and takes that for a reconnection.
# With its default settings it waits 50 ms before, each time one is opened. But where no broker is up, two things undo
# its backoff, and it tries 80 times a second at 10 ms: it opens connections only as it needs them, and it starts over
# with the addresses it was given as soon as all brokers are down. So it connects to all brokers at once and stays with
# those that it knows: the wait before a further try doubles from 10 ms to two seconds (6 tries in 5 s, and not 400).
CONNECTING: Mapping[str, str] = {
    "enable.sparse.connections": "false",
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "2000",
}


def connecting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Give a client's settings what all have in common; a setting of the connection wins.

    Without a logger the client itself writes to stderr: two lines a cause, for each client and every half a minute.
    """
    return {**CONNECTING, "logger": ClientLog(), **settings}
