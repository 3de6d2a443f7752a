from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.limits import At, Committed, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget


def target(until: OffsetLimit, partitions: tuple[int, ...] | None = None) -> DrainTarget:
    return DrainTarget.of(until, group="g", topic="orders", isolation_level="read_committed", partitions=partitions)


@pytest.mark.parametrize("until", [Latest(), At(0), At(1_769_860_800_000), Explicit({0: 0, 3: 9})], ids=repr)
@pytest.mark.parametrize("partitions", [None, (0,), (3, 0)])
def test_it_says_the_same_after_its_way_to_the_triggerer(until: OffsetLimit, partitions: Any) -> None:
    made = target(until, partitions)
    again = DrainTarget.read_text(made.to_text())
    assert again is not None
    assert again == made
    assert (again.until, again.partitions) == (until, partitions)


@pytest.mark.parametrize(
    ("until", "partitions", "said"),
    [
        (Latest(), (), "partitions is empty, and names no partition: name some, or leave it out"),
        (Latest(), (0, -1), "partitions has -1: a partition is a whole number from 0"),
        (Explicit({}), None, "until is empty"),
        (Committed(), None, r"until=Committed.*: use 'latest', a moment, an offset per partition, or a plan"),
    ],
)
def test_a_gate_that_would_be_open_at_once_or_never_is_refused(until: OffsetLimit, partitions: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        target(until, partitions)
