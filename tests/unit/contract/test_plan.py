from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.running.progress_log import table
from kpipe_engine.supervision.task_layout import assign_tasks
from tests.kit.effort import Counted, calls_of
from tests.kit.plans import plan_of

OFFSETS = st.integers(0, 2**62)


@st.composite
def plans(draw: Callable[..., Any]) -> Plan:
    ranges = []
    for partition in draw(st.sets(st.integers(0, 999), max_size=5)):
        start, length = draw(OFFSETS), draw(OFFSETS)
        ranges.append(PartitionRange(partition, start, start + length, draw(st.none() | OFFSETS)))
    return Plan(
        run_key=draw(st.text(max_size=20)),
        number=draw(st.integers(0, 2**62)),
        pipeline=draw(st.text()),
        group=draw(st.text()),
        working_group=draw(st.text()),
        topic=draw(st.text()),
        topic_id=draw(st.text()),
        isolation_level=draw(st.sampled_from(["read_committed", "read_uncommitted"])),
        continues_group=draw(st.booleans()),
        dry_run=draw(st.booleans()),
        created_at=draw(st.text()),
        topic_partitions=4,
        ranges=tuple(ranges),
    )


@given(made=plans())
@settings(deadline=None, max_examples=100)
def test_a_plan_comes_back_from_json_as_it_went(made: Plan) -> None:
    assert Plan.from_json(json.loads(json.dumps(made.to_json()))) == made


UNCUT: dict[str, Any] = {"cuts": [], "done": [], "slot": 0}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2}, "Plan.schema_version is 2"),
    ({"schema_version": True}, "Plan.schema_version is True"),
    ({"run_key": None}, "Plan.run_key: str is needed"),
    ({"continues_group": "true"}, "Plan.continues_group: bool is needed"),
    ({"dry_run": 0}, "Plan.dry_run: bool is needed"),
    ({"isolation_level": "serializable"}, "Plan.isolation_level is str 'serializable'; it must be one of"),
    ({"ranges": {}}, "Plan.ranges: a list is needed"),
    ({"ranges": [[0, 1, 2, None]]}, "Plan.ranges[0]: a JSON object is needed"),
    ({"ranges": [{"partition": 0, "start": 0, "end": 1}]}, "Plan.ranges[0] lacks committed"),
    (
        {"ranges": [{"partition": True, "start": 0, "end": 1, "committed": None, **UNCUT}]},
        "Plan.ranges[0].partition: int is needed, not bool True",
    ),
    (
        {"ranges": [{"partition": 0, "start": "0", "end": 1, "committed": None, **UNCUT}]},
        "Plan.ranges[0].start: int is needed, not str '0'",
    ),
    (
        {"ranges": [{"partition": 0, "start": 2, "end": 1, "committed": None, **UNCUT}]},
        "Plan.ranges[0]: partition 0: start 2 is after end 1",
    ),
]


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_plan_that_does_not_fit_is_refused_with_the_path_of_the_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        Plan.from_json({**plan_of().to_json(), **changes})
    assert said in str(refusal.value)


def test_a_range_that_is_cut_is_worked_on_in_pieces_with_writers_of_their_own() -> None:
    cut = plan_of(PartitionRange(1, 0, 90, 0, cuts=(40, 70), done=((50, 60),)), PartitionRange(2, 0, 30, None))
    assert [(each.start, each.end, each.slot, each.done) for each in cut.ranges[0].pieces] == [
        (0, 40, 0, ((50, 60),)),
        (40, 70, 1, ((50, 60),)),
        (70, 90, 2, ((50, 60),)),
    ]
    assert [[(each.partition, each.slot) for each in block] for block in cut.blocks] == [
        [(1, 0)],
        [(1, 1)],
        [(2, 0)],
        [(1, 2)],
    ]
    assert cut.transactional_ids == (
        "kpipe/orders/orders/1",
        "kpipe/orders/orders/1/1",
        "kpipe/orders/orders/1/2",
        "kpipe/orders/orders/2",
    )


@pytest.mark.parametrize("cuts", [(0,), (90,), (70, 40), (40, 40), (95,)])
def test_cuts_lie_in_order_within_the_range(cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not lie in order within the range"):
        PartitionRange(1, 0, 90, 0, cuts=cuts)


@pytest.mark.parametrize(("partitions", "writers"), [(1, 1), (64, 64), (65, 64), (1_000, 64)])
def test_a_topic_has_a_limited_number_of_writers(partitions: int, writers: int) -> None:
    made = dataclasses.replace(
        plan_of(*(PartitionRange(each, 0, 5, None) for each in range(partitions))), topic_partitions=partitions
    )
    assert len(made.transactional_ids) == len(made.blocks) == writers


def test_a_partition_has_one_range() -> None:
    twice = [PartitionRange(1, 0, 5, None), PartitionRange(1, 5, 9, None)]
    with pytest.raises(ValueError, match="partition 1 of 'orders' has more than one range"):
        plan_of(*twice)


def test_a_partition_has_one_range_in_a_document_too() -> None:
    document = plan_of(PartitionRange(1, 0, 5, None)).to_json()
    with pytest.raises(DocumentError, match="Plan: partition 1"):
        Plan.from_json({**document, "ranges": document["ranges"] * 2})


@pytest.mark.parametrize(
    "use",
    [
        lambda plan: dataclasses.replace(plan),
        lambda plan: Plan.from_json(json.loads(plan.to_text())),
        lambda plan: plan.blocks,
        lambda plan: plan.transactional_ids,
        lambda plan: assign_tasks(plan, PartitionScaling(), cores=4),
        lambda plan: assign_tasks(plan, PartitionScaling("parallelize_across_partitions"), cores=4),
        lambda plan: table([PartitionProgress.not_started(each) for each in plan.ranges], "orders"),
    ],
    ids=["made", "from a document", "blocks", "transactional ids", "tasks", "interleaved tasks", "table"],
)
def test_four_times_the_partitions_are_four_times_the_work(use: Callable[[Plan], Any]) -> None:
    few, many = (calls_of(partial(use, wide_plan(partitions))).total() for partitions in (1_000, 4_000))
    assert many < 5 * few


def wide_plan(partitions: int) -> Plan:
    # A document holds plain numbers only: there, what is compared is counted by the calls that it takes.
    ranges = (PartitionRange(Counted(each), 0, 5, None) for each in range(partitions))
    return plan_of(*ranges, topic_partitions=partitions)


def test_progress_is_kept_in_a_group_beside_the_public_one() -> None:
    assert plan_of(group="orders").progress_group() == "orders.kpipe"
    assert plan_of(group="orders").progress_group(2) == "orders.kpipe.2"


def test_a_run_that_is_published_works_in_a_group_of_its_own() -> None:
    published = plan_of(group="orders", working_group="orders.backfill.key")
    assert (published.is_published, plan_of().is_published) == (True, False)
    assert published.progress_group() == "orders.backfill.key.kpipe"
    assert published.transactional_id(3) == "kpipe/orders.backfill.key/orders/3"


def test_pending_ranges_are_not_empty_and_start_with_the_longest() -> None:
    short, empty, long = PartitionRange(0, 0, 5, None), PartitionRange(1, 7, 7, None), PartitionRange(2, 0, 50, None)
    made = plan_of(short, empty, long)
    assert made.pending == (long, short)
    assert made.offsets_planned == 55


def test_a_plan_of_empty_ranges_has_nothing_pending() -> None:
    assert plan_of(PartitionRange(0, 3, 3, 3)).pending == ()


@given(partition=st.integers(0, 5_000), partitions=st.integers(1, 5_000), grown=st.integers(1, 5_000))
def test_a_topic_that_grows_changes_nobodys_transactional_id(partition: int, partitions: int, grown: int) -> None:
    small, large = plan_of(topic_partitions=partitions), plan_of(topic_partitions=partitions + grown)
    assert small.transactional_id(partition) == large.transactional_id(partition)


def test_the_transactional_id_is_the_same_in_every_run() -> None:
    first, later = plan_of(PartitionRange(0, 0, 5, None)), plan_of(PartitionRange(0, 5, 9, 5))
    assert first.transactional_id(0) == later.transactional_id(0)


@pytest.mark.parametrize(
    "writers",
    [
        (("orders", "orders", 0), ("orders", "orders", 1)),
        (("orders", "a", 0), ("orders", "b", 0)),
        (("a", "orders", 0), ("b", "orders", 0)),
        (("orders", "eu.orders", 0), ("orders.eu", "orders", 0)),
        (("orders", "orders.1", 0), ("orders.orders", "1", 0)),
    ],
    ids=["partition", "topic", "group", "dot between group and topic", "digits"],
)
def test_only_the_same_group_topic_and_partition_fence_each_other(writers: tuple[tuple[str, str, int], ...]) -> None:
    ids = [plan_of(working_group=group, topic=topic).transactional_id(partition) for group, topic, partition in writers]
    assert all(one != other for one, other in pairwise(ids))
