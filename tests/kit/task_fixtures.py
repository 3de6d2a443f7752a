"""Fixtures of whatever runs in a task of Airflow."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
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
from tests.kit.plans import plan_of


class TaskInstance:
    """What a context has of a running task."""

    dag_id, run_id, task_id = "dag", "manual__2026", "orders.plan"
    map_index: int | None = -1

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}
        self.pushes: list[Any] = []
        self.pulled: dict[tuple[str, str], Any] = {}
        self.pulled_of: Any = None

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value
        self.pushes.append(value)

    def xcom_pull(self, task_ids: str, key: str, **which: Any) -> Any:
        self.pulled_of = which.get("map_indexes")
        return self.pulled.get((task_ids, key))


@pytest.fixture
def pipeline() -> KafkaPipeline:
    return KafkaPipeline(
        "orders", KafkaSource("orders"), KafkaDestination("out"), dead_letter=KafkaDeadLetter("orders.dead")
    )


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """Makes a plan of these ranges, `(start, end)` each, by partition."""

    def make(*ranges: tuple[int, int], **changes: Any) -> Plan:
        planned = [PartitionRange(each, *bounds, bounds[0]) for each, bounds in enumerate(ranges)]
        return plan_of(*planned, **{"run_key": "dag/manual__2026/orders.plan", **changes})

    return make


@pytest.fixture
def context() -> dict[str, Any]:
    return {"ti": TaskInstance(), "params": {}, "dag_run": SimpleNamespace(conf={})}


def changed(context: Any, **parts: Any) -> Any:
    """Return a context with other parts."""
    return {**context, **parts}
