"""What the tasks of a run have in common: its key, the plan, what is known of the group, and how they tell things."""

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
    """Names one run of one pipeline: the same on every try and after every clear.

    Ids that are long together are shortened, as the key is stored beside each offset.
    """
    instance = context["ti"]
    map_index = instance.map_index
    mapped = f"[{map_index}]" if map_index is not None and map_index >= 0 else ""
    return shortened(f"{instance.dag_id}/{instance.run_id}/{instance.task_id}{mapped}")


def read_plan(document: Any, pipeline: KafkaPipeline) -> Plan:
    """The plan from XCom, if it is one of this pipeline."""
    if document is None:
        raise StalePlanError(f"pipeline {pipeline.name!r} has no plan: the plan task did not succeed")
    plan = Plan.from_json(document)
    check_of_pipeline(plan, pipeline)
    return plan


def last_committed(context: Context, task_id: str, pipeline: KafkaPipeline) -> dict[int, int]:
    """Where the pipeline's group stood, as a checkpoint task knew it last in an earlier DAG run."""
    # Without a map index, all earlier runs would come, as a list as soon as there are two. In a task group that is
    # mapped, the checkpoint has the plan's own.
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
        log.warning("The XCom of %r does not say what was committed", task_id)
        return {}
    return dict(found.offsets) if (found.group, found.topic) == (pipeline.group, pipeline.source.topic) else {}


def push(context: Context, key: str, document: dict[str, Any]) -> dict[str, Any]:
    """Put into XCom what a task did, as any database takes it; the same is what the task returns."""
    shown: dict[str, Any] = cleaned_json(document)
    context["ti"].xcom_push(key=key, value=shown)
    return shown
