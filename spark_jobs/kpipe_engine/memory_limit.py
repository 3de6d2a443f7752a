"""Limit of the memory that a worker's process may write to."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

# The stacks of the client's threads take most of it.
_CLIENT_BYTES = 64 * 1024 * 1024


def limit_memory(megabytes: int | None) -> None:
    """Limit the data of this process. Not its address space: threads and Arrow reserve more than they use."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if megabytes is not None:
        limit = megabytes * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))


@contextmanager
def room_for_a_client() -> Iterator[None]:
    """Lift the limit in the block, and leave it higher by a client's share: a segment may have used all memory.

    Without memory for all of its threads, librdkafka waits forever for the first of them, and keeps Python's lock.
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
