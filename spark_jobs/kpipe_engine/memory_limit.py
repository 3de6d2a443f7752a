"""The most memory that a worker's process may write to."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

# The stacks of its threads are most of it.
_CLIENT_BYTES = 64 * 1024 * 1024


def limit_memory(megabytes: int | None) -> None:
    """Set it. A process's address space is no measure: threads and Arrow reserve much that they never use."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if megabytes is not None:
        limit = megabytes * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


@contextmanager
def room_for_a_client() -> Iterator[None]:
    """Lift it in the block, and leave so much more behind as a client takes: beside a segment that may have taken all.

    Without memory for all of its threads, librdkafka waits in vain for the first of them, and lets go of Python's lock
    never again.
    """
    limit, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    try:
        yield
    finally:
        if limit != resource.RLIM_INFINITY:
            limit += _CLIENT_BYTES
        more = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(resource.RLIMIT_DATA, (more, most))
