from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.redrive.redrive import Redrive, RedriveError, RedriveOrder, Selection
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.planning.plan_check import check_of_pipeline, check_of_redrive
from tests.kit.plans import plan_of

PIPELINE = KafkaPipeline(
    "orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=KafkaDeadLetter("orders.dead")
)
RANGE = PartitionRange(3, 0, 9, 0)
OWN = "orders.backfill.dag/run/plan"
BACKFILL: dict[str, Any] = {"continues_group": False, "group": OWN, "working_group": OWN}
PUBLISHED: dict[str, Any] = {"continues_group": False, "working_group": OWN}


def plan(**changes: Any) -> Plan:
    return plan_of(RANGE, **changes)


@pytest.mark.parametrize("changes", [{}, BACKFILL, PUBLISHED], ids=["live", "backfill", "published"])
def test_the_plans_of_a_pipeline_are_its_own(changes: dict[str, Any]) -> None:
    check_of_pipeline(plan(**changes), PIPELINE)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pipeline": "returns"}, "the plan is for pipeline 'returns' over 'orders', and this task runs 'orders'"),
        ({"topic": "returns"}, "the plan is for pipeline 'orders' over 'returns'"),
        ({"group": "payments"}, "has group='payments', and pipeline 'orders' as it is now 'orders': give all tasks"),
        ({"group": "orders.backfill.dag/run/plan"}, "has group='orders.backfill.dag/run/plan', and pipeline"),
        (
            {**BACKFILL, "group": "orders.backfill.another"},
            "has group='orders.backfill.another', and pipeline 'orders' as it is now 'orders' or 'orders.backfill.dag/",
        ),
        ({"isolation_level": "read_uncommitted"}, "has isolation_level='read_uncommitted', and pipeline"),
        ({"owner": "returns#12345678"}, "has owner='returns#12345678', and pipeline 'orders' as it is now 'orders#"),
        ({"topic_partitions": 3}, "has partition 3 of a topic with 3: the plan was changed afterwards"),
    ],
    ids=repr,
)
def test_a_plan_of_another_pipeline_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(StalePlanError) as refused:
        check_of_pipeline(plan(**changes), PIPELINE)
    assert said in str(refused.value)
    assert "start a new run" in str(refused.value)


def test_a_plan_from_before_the_group_was_renamed_is_refused() -> None:
    with pytest.raises(
        StalePlanError, match="has working_group='orders', and pipeline 'orders' as it is now 'orders-v2'"
    ):
        check_of_pipeline(plan(), replace(PIPELINE, group_id="orders-v2"))


REDRIVE = Redrive("source", Selection(), None, "parked", "orders.dead.redriven", "orders")
REDRIVES = "kpipe.redrive.orders.dead"
OF_DEAD: dict[str, Any] = {
    "topic": "orders.dead",
    "group": REDRIVES,
    "working_group": REDRIVES,
    "continues_group": False,
}


def test_an_order_over_the_dead_letters_of_a_pipeline_is_its_own() -> None:
    check_of_redrive(RedriveOrder(plan(**OF_DEAD), REDRIVE), PIPELINE, "parked")


@pytest.mark.parametrize(
    ("of_plan", "of_redrive", "said"),
    [
        ({"pipeline": "returns"}, {}, "pipeline='returns'"),
        ({"topic": "orders"}, {}, "topic='orders', and pipeline 'orders' as it is now 'orders.dead'"),
        ({"group": "orders"}, {}, "group='orders', and pipeline 'orders' as it is now 'kpipe.redrive.orders.dead'"),
        ({"working_group": "orders"}, {}, "working_group='orders', and pipeline 'orders' as it is now 'kpipe.redrive."),
        ({"isolation_level": "read_uncommitted"}, {}, "isolation_level='read_uncommitted'"),
        ({"topic_partitions": 3}, {}, "partition 3 of a topic with 3"),
        ({}, {"ledger_topic": "payments"}, "ledger_topic='payments'"),
        ({}, {"source_topic": "payments"}, "source_topic='payments'"),
        ({}, {"parking_topic": None}, "parking_topic=None, and pipeline 'orders' as it is now 'parked'"),
    ],
    ids=repr,
)
def test_an_order_to_other_topics_is_refused(of_plan: dict[str, Any], of_redrive: dict[str, Any], said: str) -> None:
    order = RedriveOrder(plan(**{**OF_DEAD, **of_plan}), replace(REDRIVE, **of_redrive))
    with pytest.raises(StalePlanError) as refused:
        check_of_redrive(order, PIPELINE, "parked")
    assert said in str(refused.value)


def test_a_target_that_the_pipeline_can_no_longer_have_is_refused() -> None:
    apart = replace(PIPELINE, destination=KafkaDestination("out", conn_id="there"), delivery="at_least_once")
    with pytest.raises(RedriveError, match="use target='output'"):
        check_of_redrive(RedriveOrder(plan(**OF_DEAD), REDRIVE), apart, "parked")
