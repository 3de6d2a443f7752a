from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets import At, Committed, Earliest, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.contract.pipeline import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.planner import Snapshot, Wishes
from airflow_provider_kpipe.kafka.planning import group_of, refuse_to_go_back
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


def snapshot(**committed: int) -> Snapshot:
    held = {int(name.removeprefix("p")): GroupOffset(offset, None) for name, offset in committed.items()}
    return Snapshot(topic="orders", earliest={}, latest={}, at={}, committed=held, stored={})


def test_publishing_never_takes_a_group_back() -> None:
    with pytest.raises(PlanError, match="take group 'orders' back from 50 to 49 in partition 1: leave publish off"):
        refuse_to_go_back("orders", snapshot(p0=10, p1=50), {0: 10, 1: 49})


@pytest.mark.parametrize("ends", [{0: 10}, {0: 11}, {1: 0}, {}], ids=["where it is", "forwards", "new", "nothing"])
def test_publishing_may_leave_a_group_or_take_it_forwards(ends: dict[int, int]) -> None:
    assert refuse_to_go_back("orders", snapshot(p0=10), ends) is None  # type: ignore[func-returns-value]
