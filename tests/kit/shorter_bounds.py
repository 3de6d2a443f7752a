"""How long a worker waits for a broker that does not come back, where a test makes it shorter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

SHORTER = {
    "writing.backpressure.STANDSTILL_SECONDS": 4.0,
    "bounded_calls.CLOSE_SECONDS": 2.0,
    "writing.producer_session.ANSWER_SECONDS": 4.0,
    "writing.chunk_writer.STORE_SECONDS": 4.0,
    "assignment.last_words.SAY_SECONDS": 4.0,
    "writing.missing_replicas.ASK_SECONDS": 4.0,
    "writing.fencing.ANSWER_SECONDS": 4.0,
    "assignment.progress_store.ANSWER_SECONDS": 4.0,
    "reading.planned_topic.LOOK_SECONDS": 4.0,
    "reading.shared_consumer.ANSWER_SECONDS": 4.0,
    "reading.range_reader.STALL_SECONDS": 4.0,
}


def shorten_bounds(patch: pytest.MonkeyPatch, bounds: Mapping[str, float] = SHORTER) -> None:
    for bound, seconds in bounds.items():
        patch.setattr(f"kpipe_engine.{bound}", seconds)
