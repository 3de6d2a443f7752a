"""Has a successor store the reason why partitions stop, if their own worker could not."""

from __future__ import annotations

import logging
from typing import Protocol

from confluent_kafka import KafkaException

from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError

log = logging.getLogger("kpipe")

SAY_SECONDS = 15.0


class Successor(Protocol):
    """A worker with clients of its own, which only has to stop."""

    def open(self) -> None: ...

    def run_chunks(self) -> None: ...

    def close(self) -> None: ...


def say_why(successor: Successor) -> None:
    """Let the successor take the partitions on, and store. A failure or delay costs only a line in the log."""
    calls = BoundedCalls(successor.close)

    def say() -> None:
        successor.open()
        successor.run_chunks()

    try:
        calls.within(SAY_SECONDS, "it was to store why partitions stop", say)
    except (PartitionHaltedError, ChunkFailedError, KafkaException) as failure:
        log.warning("why partitions stop could not be stored: %s", failure)
    finally:
        calls.close()
