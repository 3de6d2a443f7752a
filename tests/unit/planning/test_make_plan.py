from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.standing import Facts, Held
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning.make_plan import check_owner, check_publishing
from airflow_provider_kpipe.planning.ranges import Snapshot


def pipeline(**changes: Any) -> KafkaPipeline:
    declared = {"name": "orders", "source": KafkaSource("orders"), "destination": KafkaDestination("out")}
    return KafkaPipeline(**{**declared, **changes})


def marked(by: KafkaPipeline) -> Facts:
    mark = CommitMark("dag/before/plan", 3, "id", Origin(1), by.owner)
    return Facts("id", Held(10, mark))


def test_a_group_is_not_read_by_two_pipelines() -> None:
    check_owner(pipeline(), {0: Facts("id"), 1: Facts("id", Held(5)), 2: marked(pipeline())})
    for other in (pipeline(name="returns"), pipeline(destination=KafkaDestination("elsewhere"))):
        with pytest.raises(PlanError, match=r"partition 4 of group 'orders' belongs to pipeline '(orders|returns)#"):
            check_owner(pipeline(), {0: Facts("id"), 4: marked(other)})


def test_another_pipeline_takes_a_group_over_where_somebody_has_reset_it() -> None:
    """A reset removes the mark, also where the offset stays."""
    mark = CommitMark("dag/before/plan", 3, "id", Origin(1), pipeline(name="returns").owner)
    check_owner(pipeline(), {0: Facts("id", Held(10), Held(10, mark))})


def publish(start: int, end: int, held: int | None, earliest: int = 0) -> None:
    """Check a run over `[start, end)` of partition 1, beside a partition 0 that the run is at one with."""
    facts = {0: Facts("id", Held(10)), 1: Facts("id", None if held is None else Held(held))}
    snapshot = Snapshot("orders", earliest={0: 0, 1: earliest}, latest={}, facts=facts)
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
        (0, 1_000, None, 0),
        (700, 1_000, None, 700),
        (900, 900, 500, 0),
        (100, 100, 500, 0),
        (700, 900, 500, 700),
    ],
    ids=[
        "where it is",
        "forwards",
        "next",
        "a new group",
        "a new group from where its log begins",
        "empty above",
        "empty below",
        "the rest has left the log",
    ],
)
def test_publishing_may_leave_a_group_or_take_it_forwards(
    start: int, end: int, held: int | None, earliest: int
) -> None:
    publish(start, end, held, earliest)
