"""How every Kafka client of ours connects, on Airflow's side and on Spark's."""

from __future__ import annotations

from collections.abc import Mapping

# A client turns from the address it was given to the broker that answers there, and takes that for a reconnection.
# With its default settings it waits 50 ms before, each time one is opened; and one that opens connections only as it
# needs them tries that without any backoff while no broker is up, 80 times a second at 10 ms. So it connects to all
# brokers at once, and the wait before a further try doubles from 10 ms to two seconds.
CONNECTING: Mapping[str, str] = {
    "enable.sparse.connections": "false",
    "reconnect.backoff.ms": "10",
    "reconnect.backoff.max.ms": "2000",
}
