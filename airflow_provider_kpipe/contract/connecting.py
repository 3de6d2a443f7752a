"""Settings with which each Kafka client of kpipe connects and logs, on Airflow's side and on Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_kpipe.contract.client_log import ClientLog

# A client switches from the bootstrap address to the broker that answers there, and counts that as a reconnection: with
# the default settings, each new client waits 50 ms before it, hence the 10 ms. But if no broker is up, two defaults
# undo the backoff, and at 10 ms the client tries 80 times a second: it opens connections only as it needs them, and it
# starts over with the bootstrap addresses as soon as all brokers are down. So here it connects to all brokers at once,
# and stays with those that it knows: the wait before the next try doubles from 10 ms to 2 s (6 tries in 5 s, not 400).
CONNECTING: Mapping[str, str] = {
    "enable.sparse.connections": "false",
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "2000",
}


def connecting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a client's settings with those that all clients share; a setting of the connection wins.

    Without a logger, each client itself writes two lines per cause to stderr, every half a minute.
    """
    return {**CONNECTING, "logger": ClientLog(), **settings}
