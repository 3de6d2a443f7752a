"""Free loopback ports for servers that are about to start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

from airflow_provider_kpipe.sandbox.errors import SandboxError

_RANGE_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _LAST_BY_DEFAULT = 15_000, 32_767
_MOST_TRIES = 1_000
# Independent of `random.seed`: a test that seeds it would make all processes try the same ports.
_RANDOM = random.SystemRandom()


def free_ports(count: int) -> tuple[int, ...]:
    """Find distinct ports that no process listens on, outside the range that the system gives to connections.

    Java takes seconds to start, and a killed broker returns to its port: a connection that got the port in between
    would block the broker. A client that calls a stopped broker could even connect to itself there.
    """
    own = _below_connections()
    with contextlib.ExitStack() as stack:
        # All ports are held until the last is bound, so that no port is returned twice.
        sockets = []
        # If all ports are for connections, the system chooses.
        for port in [*_RANDOM.sample(own, min(len(own), _MOST_TRIES)), *[0] * count]:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                candidate.close()
                continue
            sockets.append(stack.enter_context(candidate))
            if len(sockets) == count:
                break
        return tuple(each.getsockname()[1] for each in sockets)


def choose_ports(wished: int | None) -> tuple[int, int]:
    """Return the port that a broker's clients use, free or as wished, and one for the broker itself."""
    if wished is None:
        clients, own = free_ports(2)
        return clients, own
    with socket.socket() as candidate:
        # As Java does: a port whose last connections are still closing can be taken.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", wished))
        except OSError as error:
            raise SandboxError(
                f"port {wished} cannot be listened on ({error.strerror}): end the process that listens there, or "
                "choose another"
            ) from error
        (own,) = free_ports(1)
    return wished, own


def _below_connections() -> range:
    try:
        first = int(_RANGE_OF_CONNECTIONS.read_text().split()[0])
    except OSError:  # only Linux has it
        first = _LAST_BY_DEFAULT + 1
    return range(_FIRST, first)
