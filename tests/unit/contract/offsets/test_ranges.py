from __future__ import annotations

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import NO_EPOCH, PartitionRange


@pytest.mark.parametrize(
    ("partition", "start", "end", "said"),
    [
        (-1, 0, 1, "partition -1"),
        (0, -1, 1, "start -1"),
        (2, 5, 4, "partition 2: start 5 is after end 4"),
    ],
)
def test_a_range_that_cannot_be_is_refused(partition: int, start: int, end: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PartitionRange(partition, start, end, None)


def test_a_range_is_as_long_as_its_offsets() -> None:
    assert len(PartitionRange(0, 10, 25, 3)) == 15
    assert len(PartitionRange(0, 10, 10, None)) == 0


def test_a_plan_knows_the_leader_of_what_lies_before_its_end_only() -> None:
    planned = PartitionRange(0, 10, 25, 3, leader_epoch=7)
    assert [planned.epoch_at(each) for each in (10, 25, 26)] == [7, 7, NO_EPOCH]
