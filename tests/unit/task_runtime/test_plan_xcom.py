from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.task_runtime.plan_xcom import read_plan, run_key_of

MakePlan = Callable[..., Plan]


@pytest.mark.parametrize(
    ("map_index", "run_key"),
    [
        (-1, "dag/manual__2026/orders.plan"),
        (None, "dag/manual__2026/orders.plan"),
        (0, "dag/manual__2026/orders.plan[0]"),
        (7, "dag/manual__2026/orders.plan[7]"),
    ],
)
def test_a_run_key_names_the_task_of_the_run_and_its_map_index(context: Any, map_index: Any, run_key: str) -> None:
    context["ti"].map_index = map_index
    assert run_key_of(context) == run_key


def test_the_plan_of_this_pipeline_is_read(pipeline: KafkaPipeline, plan: MakePlan) -> None:
    assert read_plan(plan((0, 5)).to_json(), pipeline) == plan((0, 5))


def test_no_plan_is_refused(pipeline: KafkaPipeline) -> None:
    with pytest.raises(StalePlanError, match="pipeline 'orders' has no plan: the plan task did not succeed"):
        read_plan(None, pipeline)


@pytest.mark.parametrize("document", [{}, "plan", [], {"schema_version": 9}], ids=repr)
def test_an_xcom_that_is_not_a_plan_is_refused(pipeline: KafkaPipeline, document: Any) -> None:
    with pytest.raises(DocumentError, match=r"^Plan"):
        read_plan(document, pipeline)


@pytest.mark.parametrize("changes", [{"pipeline": "returns"}, {"topic": "returns"}], ids=repr)
def test_the_plan_of_another_pipeline_is_refused(
    pipeline: KafkaPipeline, plan: MakePlan, changes: dict[str, str]
) -> None:
    with pytest.raises(StalePlanError, match=r"the plan is for pipeline .*'returns'.* this task runs 'orders'"):
        read_plan(plan((0, 5), **changes).to_json(), pipeline)


def test_a_plan_that_was_changed_on_its_way_is_refused(pipeline: KafkaPipeline, plan: MakePlan) -> None:
    document = plan((0, 5)).to_json()
    document["group"] = "payments"
    with pytest.raises(StalePlanError, match="has group='payments', and pipeline 'orders' as it is now 'orders'"):
        read_plan(document, pipeline)
