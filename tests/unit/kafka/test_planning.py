from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets import (
    At,
    Committed,
    Earliest,
    Explicit,
    Latest,
    OffsetLimit,
    PartitionRange,
)
from airflow_provider_kpipe.contract.pipeline import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.planner import Snapshot, Wishes
from airflow_provider_kpipe.kafka.planning import check_publishing, group_of
from airflow_provider_kpipe.kafka.positions import GroupOffset


def pipeline(**changes: Any) -> KafkaPipeline:
    return KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), **changes)


@pytest.mark.parametrize("start", [Committed(), Committed("error")], ids=repr)
@pytest.mark.parametrize("publish", [False, True])
def test_a_run_that_goes_on_where_the_group_stands_is_the_groups_own(start: OffsetLimit, publish: bool) -> None:
    assert group_of(pipeline(), Wishes(start=start), "dag/run/plan", publish) == "orders"


@pytest.mark.parametrize("start", [Earliest(), Latest(), At(5), Explicit({0: 1})], ids=repr)
def test_a_backfill_has_a_group_of_its_own(start: OffsetLimit) -> None:
    assert group_of(pipeline(), Wishes(start=start), "dag/run/plan", False) == "orders.backfill.dag/run/plan"


def test_a_backfill_is_named_after_the_group_of_its_pipeline() -> None:
    assert group_of(pipeline(group_id="v2"), Wishes(start=Earliest()), "key", False) == "v2.backfill.key"


def test_a_backfill_moves_the_live_group_where_it_was_said() -> None:
    assert group_of(pipeline(), Wishes(start=Earliest()), "dag/run/plan", True) == "orders"


def test_two_backfills_are_apart() -> None:
    wishes = Wishes(start=Earliest())
    assert group_of(pipeline(), wishes, "one", False) != group_of(pipeline(), wishes, "two", False)


def publish(start: int, end: int, held: int | None, earliest: int = 0) -> None:
    """Check a run over `[start, end)` of partition 1, beside a partition 0 that the run is at one with."""
    committed = {0: GroupOffset(10, None)} | ({} if held is None else {1: GroupOffset(held, None)})
    snapshot = Snapshot("orders", earliest={0: 0, 1: earliest}, latest={}, at={}, committed=committed, stored={})
    check_publishing("orders", snapshot, [PartitionRange(0, 10, 20, 10), PartitionRange(1, start, end, held)])


@pytest.mark.parametrize(
    ("start", "end", "earliest", "said"),
    [
        (0, 499, 0, "take group 'orders' back from 500 to 499 in partition 1: leave publish off"),
        (
            900,
            1_000,
            0,
            "take group 'orders' from 500 to 1000 in partition 1 and pass over 500 to 899, which it has not read: "
            "start at 500 or before, or leave publish off",
        ),
        (501, 502, 0, "pass over 500 to 500"),
        (900, 1_000, 700, "from 500 to 1000 in partition 1 and pass over 700 to 899"),
    ],
    ids=["back", "over", "over one", "over what is left"],
)
def test_publishing_takes_a_group_neither_back_nor_over_what_it_has_not_read(
    start: int, end: int, earliest: int, said: str
) -> None:
    with pytest.raises(PlanError) as refused:
        publish(start, end, held=500, earliest=earliest)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("start", "end", "held", "earliest"),
    [
        (400, 500, 500, 0),
        (400, 501, 500, 0),
        (500, 600, 500, 0),
        (900, 1_000, None, 0),
        (900, 900, 500, 0),
        (100, 100, 500, 0),
        (700, 900, 500, 700),
    ],
    ids=["where it is", "forwards", "next", "a new group", "empty above", "empty below", "the rest has left the log"],
)
def test_publishing_may_leave_a_group_or_take_it_forwards(
    start: int, end: int, held: int | None, earliest: int
) -> None:
    publish(start, end, held, earliest)
