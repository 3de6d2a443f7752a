from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.metadata import as_text, most_spans
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import CommitMark
from airflow_provider_kpipe.contract.progress.progress import Counts, Ending, PartitionProgress
from airflow_provider_kpipe.contract.progress.publishing import MovedError, target_of
from airflow_provider_kpipe.contract.progress.standing import Facts, Held
from tests.kit.plans import plan_of

TOPIC = "abc"
ORIGIN = Origin(3, 10)
PLAN = replace(plan_of(), topic_id=TOPIC, number=2)
BACKFILL = replace(PLAN, working_group="orders.backfill.run", continues_group=False)
RANGE = PartitionRange(0, 40, 100, 40, origin=ORIGIN, group_origin=ORIGIN)


def facts(offset: int | None, **changes: Any) -> Facts:
    """A group that a checkpoint of this pipeline has left at an offset."""
    mark = replace(CommitMark("run-1", 1, TOPIC, ORIGIN, PLAN.owner), **changes)
    return Facts(TOPIC, None if offset is None else Held(offset, mark))


def come(next_offset: int, planned: PartitionRange = RANGE, **more: Any) -> PartitionProgress:
    return PartitionProgress(planned, next_offset, Counts(), **more)


def test_a_run_takes_its_group_to_where_it_has_come_with_what_lies_beyond() -> None:
    target = target_of(PLAN, come(70, beyond=((80, 90),)), facts(40))
    assert target is not None
    assert (target.offset, target.mark.beyond, target.mark.origin) == (70, ((80, 90),), ORIGIN)


@pytest.mark.parametrize("committed", [70, 90])
def test_never_back_nor_to_where_it_stands(committed: int) -> None:
    assert target_of(PLAN, come(70), facts(committed)) is None


def test_completed_pieces_above_a_group_that_stays_are_reported_once() -> None:
    beyond = ((80, 90),)
    target = target_of(PLAN, come(40, beyond=beyond), facts(40))
    assert target is not None
    assert (target.offset, target.mark.beyond) == (40, beyond)
    assert target_of(PLAN, come(40, beyond=beyond), facts(40, beyond=beyond)) is None
    assert target_of(PLAN, come(40, beyond=beyond), facts(41)) is None


def test_a_checkpoint_leaves_the_partitions_of_a_newer_run_alone() -> None:
    assert target_of(PLAN, come(70, ended="revoked", reason="run newer took it over"), facts(40)) is None


def test_a_group_that_somebody_has_moved_is_left_where_it_is() -> None:
    with pytest.raises(MovedError, match="group 'orders' stood at 40 when the plan was made and is at 20 now"):
        target_of(PLAN, come(70), Facts(TOPIC, Held(20)))


def test_a_group_that_another_pipeline_moves_is_too() -> None:
    with pytest.raises(MovedError, match="by run run-1 of pipeline 'other'"):
        target_of(PLAN, come(70), facts(40, owner="other"))


@pytest.mark.parametrize("plan", [PLAN, BACKFILL], ids=["continued", "published"])
@pytest.mark.parametrize("ended", [None, "revoked"])
def test_a_group_that_somebody_has_put_there_gets_a_mark_where_it_is(plan: Plan, ended: Ending | None) -> None:
    planned = replace(RANGE, origin=Origin(1, 40), group_origin=Origin(1, 40))
    found = target_of(plan, come(40, planned, started=False, ended=ended), Facts(TOPIC, Held(40)))
    assert found is not None
    assert (found.offset, found.mark.origin, found.mark.beyond) == (40, Origin(1, 40), ())


def test_a_group_of_a_topic_that_is_gone_gets_none() -> None:
    planned = replace(RANGE, origin=Origin(1), group_origin=Origin(1))
    gone = Facts("another", facts(40).committed)
    assert target_of(PLAN, come(40, planned, started=False), gone) is None


@pytest.mark.parametrize(("end", "target"), [(40, 40), (100, None)], ids=["empty", "nothing done"])
def test_an_empty_partition_of_a_new_group_stands_somewhere_from_then_on(end: int, target: int | None) -> None:
    planned = replace(RANGE, end=end, committed=None, origin=Origin(1), group_origin=Origin(1))
    found = target_of(PLAN, come(40, planned, started=False), Facts(TOPIC))
    assert (found.offset if found else None) == target


def test_a_backfill_passes_over_nothing_that_the_group_has_not_read() -> None:
    with pytest.raises(MovedError):
        target_of(BACKFILL, come(70), facts(30))


def test_but_over_what_had_left_the_log_when_it_was_planned() -> None:
    planned = replace(RANGE, committed=30)
    found = target_of(BACKFILL, come(70, planned), facts(30))
    assert found is not None
    assert found.offset == 70
    with pytest.raises(MovedError):
        target_of(BACKFILL, come(70, planned), facts(29))


@pytest.mark.parametrize(("committed", "target"), [(40, 70), (60, 70), (70, None), (90, None)])
def test_a_backfill_takes_the_group_forwards_only(committed: int, target: int | None) -> None:
    found = target_of(BACKFILL, come(70), facts(committed))
    assert (found.offset if found else None) == target


def test_work_beyond_the_window_of_a_backfill_stays_done() -> None:
    found = target_of(BACKFILL, come(70), facts(60, beyond=((70, 80), (85, 90))))
    assert found is not None
    assert (found.offset, found.mark.beyond) == (80, ((85, 90),))


def test_nor_does_a_run_forget_what_a_backfill_has_done_beyond_it_since_its_plan() -> None:
    found = target_of(PLAN, come(100), facts(60, beyond=((110, 120),)))
    assert found is not None
    assert (found.offset, found.mark.beyond) == (100, ((110, 120),))


def test_spans_that_do_not_fit_beside_the_offset_are_read_again() -> None:
    many = tuple((each, each + 1) for each in range(100, 2_100, 10))
    found = target_of(PLAN, come(70), facts(60, beyond=many))
    assert found is not None
    assert found.mark.beyond == many[: most_spans(PLAN.metadata_bytes)] != ()
    assert len(as_text(found.mark.to_json()).encode()) <= PLAN.metadata_bytes


def test_a_run_in_a_re_created_topic_takes_the_group_to_its_own_position() -> None:
    """Also where that lies below the offset that the group holds of the one before."""
    planned = replace(RANGE, start=0, end=30, committed=None, origin=Origin(1), group_origin=Origin(1))
    found = target_of(replace(PLAN, topic_id="another"), come(30, planned), Facts("another", facts(40).committed))
    assert found is not None
    assert (found.offset, found.mark.topic_id) == (30, "another")
