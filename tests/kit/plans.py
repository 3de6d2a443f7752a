"""A plan as tests want one: what they do not care about is filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.plan import Plan


def plan_of(*ranges: PartitionRange, **changes: Any) -> Plan:
    plan = Plan(
        run_key="dag/run/plan",
        number=1,
        pipeline="orders",
        group="orders",
        working_group="orders",
        topic="orders",
        topic_id="abc",
        isolation_level="read_committed",
        continues_group=True,
        dry_run=False,
        created_at="2026-01-31T12:00:00+00:00",
        topic_partitions=max([4, *(each.partition + 1 for each in ranges)]),
        ranges=ranges,
        owner=KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out")).owner,
    )
    return replace(plan, **changes)
