"""How long a worker waits for a broker that does not come back, where a test makes it shorter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

SHORTER = {
    "admission.STANDSTILL_SECONDS": 4.0,
    "deadline.CLOSE_SECONDS": 2.0,
    "delivery.ANSWER_SECONDS": 4.0,
    "delivery.STORE_SECONDS": 4.0,
    "last_words.SAY_SECONDS": 4.0,
    "missing_replicas.ASK_SECONDS": 4.0,
    "ownership.ANSWER_SECONDS": 4.0,
    "planned_topic.LOOK_SECONDS": 4.0,
    "redrive_ledger.ANSWER_SECONDS": 4.0,
    "source.ANSWER_SECONDS": 4.0,
    "source.STALL_SECONDS": 4.0,
}


def shorten_bounds(patch: pytest.MonkeyPatch, bounds: Mapping[str, float] = SHORTER) -> None:
    for bound, seconds in bounds.items():
        patch.setattr(f"kpipe_engine.{bound}", seconds)
