"""The state that the tasks of a run share: its key, the plan, the group's last known offsets, and XComs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_provider_kpipe.contract.clean_text import cleaned_json
from airflow_provider_kpipe.contract.offsets.metadata import shortened
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.checkpoint import COMMITTED_KEY, CommittedOffsets
from airflow_provider_kpipe.exceptions import StalePlanError
from airflow_provider_kpipe.planning.plan_check import check_of_pipeline

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


def run_key_of(context: Context) -> str:
    """Return the key of one run of one pipeline: the same on every try and after every clear.

    It is shortened if the ids are long, as the key is stored beside each offset.
    """
    instance = context["ti"]
    map_index = instance.map_index
    mapped = f"[{map_index}]" if map_index is not None and map_index >= 0 else ""
    return shortened(f"{instance.dag_id}/{instance.run_id}/{instance.task_id}{mapped}")


def read_plan(document: Any, pipeline: KafkaPipeline) -> Plan:
    """Return the plan from XCom; raise if there is none, or if it is another pipeline's."""
    if document is None:
        raise StalePlanError(f"pipeline {pipeline.name!r} has no plan: the plan task did not succeed")
    plan = Plan.from_json(document)
    check_of_pipeline(plan, pipeline)
    return plan


def last_committed(context: Context, task_id: str, pipeline: KafkaPipeline) -> dict[int, int]:
    """Return the offsets of the pipeline's group that a checkpoint task recorded last, in an earlier DAG run."""
    # Without a map index, Airflow returns those of all earlier runs, as a list if there are two or more. In a mapped
    # task group, the checkpoint has the same map index as the plan.
    instance = context["ti"]
    record = instance.xcom_pull(
        task_ids=task_id,
        key=COMMITTED_KEY,
        include_prior_dates=True,
        map_indexes=-1 if instance.map_index is None else instance.map_index,
    )
    if record is None:
        return {}
    found = CommittedOffsets.read_json(record, f"what {task_id!r} committed last")
    if found is None:
        log.warning("The XCom of %r has no committed offsets", task_id)
        return {}
    return dict(found.offsets) if (found.group, found.topic) == (pipeline.group, pipeline.source.topic) else {}


def push(context: Context, key: str, document: dict[str, Any]) -> dict[str, Any]:
    """Push a task's result to XCom, cleaned so that any database takes it; return it for the task to return."""
    shown: dict[str, Any] = cleaned_json(document)
    context["ti"].xcom_push(key=key, value=shown)
    return shown
