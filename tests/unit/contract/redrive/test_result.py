from __future__ import annotations

from dataclasses import replace

from airflow_provider_kpipe.contract.faults.causes import Cause
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import OUTCOMES, Redrive, RedriveOrder, Selection
from airflow_provider_kpipe.contract.redrive.result import PartitionRedrive, RedriveResult
from tests.kit.plans import plan_of

RANGES = (PartitionRange(0, 0, 9, 0), PartitionRange(1, 5, 8, 5))
ORDER = RedriveOrder(
    plan_of(*RANGES, topic="orders.dead"),
    Redrive("source", Selection("orders"), 3, None, "orders.dead.redriven", "orders"),
)
CAUSE = Cause("builtins.ValueError", "orders:parse", 2, 0, 4)
COUNTS = Counts(
    read=9,
    written=4,
    dead_lettered=2,
    filtered=3,
    named={"kpipe:redriven": 6, "kpipe:not_selected": 3, "refunds": 5},
    causes=(CAUSE,),
)


def partition(at: int, counts: Counts, next_offset: int, reason: str | None = None) -> PartitionRedrive:
    return PartitionRedrive.of(PartitionProgress(RANGES[at], next_offset, counts, reason=reason))


def test_the_engines_counters_become_outcomes_and_those_of_segments_stay() -> None:
    made = partition(0, COUNTS, 9)
    assert made.outcomes == {**dict.fromkeys(OUTCOMES, 0), "redriven": 6, "not_selected": 3}
    assert made.counted == {"refunds": 5}
    assert (made.read, made.written, made.dead_lettered, made.causes) == (9, 4, 2, (CAUSE,))


def test_a_partition_says_how_far_it_has_come_and_why_no_further() -> None:
    made = partition(1, COUNTS, 6, "offset 6: refused")
    assert (made.partition, made.start, made.end, made.next_offset) == (1, 5, 8, 6)
    assert (made.complete, made.reason) == (False, "offset 6: refused")


def test_the_result_sums_all_partitions() -> None:
    result = RedriveResult.of(ORDER, [partition(0, COUNTS, 9), partition(1, COUNTS, 8)])
    assert (result.topic, result.target, result.complete) == ("orders.dead", "source", True)
    assert (result.written, result.dead_lettered, result.counted) == (8, 4, {"refunds": 10})
    assert (result.outcomes["redriven"], result.outcomes["not_selected"], result.outcomes["parked"]) == (12, 6, 0)
    (cause,) = result.causes
    assert (cause.exception_class, cause.count) == ("builtins.ValueError", 4)


def test_it_is_complete_only_if_all_partitions_are() -> None:
    assert not RedriveResult.of(ORDER, [partition(0, COUNTS, 9), partition(1, COUNTS, 6)]).complete


def test_only_a_dry_run_describes_letters() -> None:
    order = replace(ORDER, plan=replace(ORDER.plan, dry_run=True))
    seen = RedriveResult.of(order, [], exception_classes={"KeyError": 2}, pipelines={"orders": 2})
    assert (seen.dry_run, seen.exception_classes, seen.pipelines) == (True, {"KeyError": 2}, {"orders": 2})
    done = RedriveResult.of(ORDER, [])
    assert (done.dry_run, done.exception_classes, done.pipelines, done.samples) == (False, {}, {}, ())
