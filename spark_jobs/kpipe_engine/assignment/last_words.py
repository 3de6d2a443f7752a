"""Last words of a worker that could not store the reason why its partitions stop: a successor stores it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from confluent_kafka import KafkaException

from kpipe_engine.assignment.assignment import Assignment
from kpipe_engine.assignment.range_state import RangeState
from kpipe_engine.bounded_calls import BoundedCalls
from kpipe_engine.errors import ChunkFailedError, PartitionHaltedError

log = logging.getLogger("kpipe")

SAY_SECONDS = 15.0


class Successor(Protocol):
    """A worker with clients of its own, which only has to stop."""

    def open(self) -> None: ...

    def run_chunks(self) -> None: ...

    def abandon(self) -> None: ...

    def close(self) -> None: ...


class LastWords:
    """Last act of a worker that cannot continue: its partitions end, and a successor stores the reason.

    The outcome of the open chunk is unknown: the successor goes back to the stored offsets, and stores the reason for
    each partition that is still ours.
    """

    def __init__(
        self, explain: Callable[[Exception], str], succeed: Callable[[Sequence[RangeState], str], Successor]
    ) -> None:
        """Take two functions that the last words need.

        :param explain: returns the reason to store for an error
        :param succeed: builds the worker that stops these ranges for this reason
        """
        self._explain, self._succeed = explain, succeed

    def say(self, assignment: Assignment, stop: Exception) -> None:
        """Stop the partitions that are not settled. A successor that fails or is late costs only a line in the log."""
        reason = self._explain(stop)
        if not (states := assignment.stop_unsettled(reason)):
            return
        successor = self._succeed(states, reason)
        calls = BoundedCalls(successor.close)
        try:
            calls.within(SAY_SECONDS, "it was to store why partitions stop", partial(_say, successor))
        except (PartitionHaltedError, ChunkFailedError, KafkaException) as failure:
            # It may still be at it, in a thread of its own; the next attempt should not meet it there for long.
            successor.abandon()
            log.warning("cannot store the reason of stopped partitions: %s", failure)
        finally:
            calls.close()


def _say(successor: Successor) -> None:
    successor.open()
    successor.run_chunks()
