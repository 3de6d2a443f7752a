from __future__ import annotations

import pytest

from kpipe_engine.assignment.precautions import Suspicion
from kpipe_engine.assignment.worker_position import At

SUSPICION = Suspicion(partition=3, first=10, after=20, records=1)


@pytest.mark.parametrize(
    ("at", "covered"),
    [
        (At(3, 10, 11, 1, 1), True),
        (At(3, 5, 9, 4, 4), True),
        (At(3, 19, 40, 20, 20), True),
        (At(3, 20, 21, 1, 1), False),
        (At(4, 10, 11, 1, 1), False),
    ],
    ids=["inside", "before", "across the end", "behind", "another partition"],
)
def test_a_suspicion_covers_what_begins_before_its_end(at: At, covered: bool) -> None:
    assert SUSPICION.covers(at) is covered
