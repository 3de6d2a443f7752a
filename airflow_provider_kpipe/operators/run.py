"""Runs one bounded Spark job over a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.operators.spark_job import PROGRESS_KEY, SparkJobOperator
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry
from airflow_provider_kpipe.task_runtime.frozen_state import record, recorded
from airflow_provider_kpipe.task_runtime.plan_xcom import push, read_plan

if TYPE_CHECKING:
    from airflow.sdk import Context


RUN_KEY = "kpipe_run"


class KpipeRunOperator(SparkJobOperator):
    """Submits the job, shows its progress, and fails unless every range was read to its end.

    If it is cleared after it has completed, it returns its recorded result, and submits nothing.

    :param pipeline: the pipeline to run; the same as the plan's
    :param plan: the plan, usually the plan task's output
    :param conn_id: Spark connection
    :param spark_conf: Spark properties, above those of the cluster; they are passed in a private file
    :param py_files: the modules that hold the segments: .py or .zip files, or package folders
    :param max_run_time: so long after the job was submitted, all partitions yield: the checkpoint commits the records
        that they have completed, and the next run resumes there. The task then fails, so that no later task takes
        the plan for done
    :param progress_interval: seconds between two looks at the progress, for the log and the XCom `progress`
    :param submit_options: more arguments for the Spark provider's SparkSubmitHook, such as executor_memory
    """

    template_fields: Sequence[str] = ("plan",)
    ui_color = "#fbe9d7"

    def __init__(self, *, pipeline: KafkaPipeline, plan: Any, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.plan = plan

    def execute(self, context: Context) -> dict[str, Any]:
        with failing_without_retry():
            plan = read_plan(self.plan, self.pipeline)
            if plan.dry_run:
                raise AirflowSkipException("Dry run: nothing is read")
            if not plan.pending:
                raise AirflowSkipException("The plan is empty: there is nothing to read")
            done = recorded(context, RUN_KEY, plan)
            if done is not None:
                return push(context, PROGRESS_KEY, done)
            result = self._run(plan, context)
            record(context, RUN_KEY, plan, result)
            return result

    def _run(self, plan: Plan, context: Context) -> dict[str, Any]:
        job = self.job(self.pipeline, plan, self.pipeline.source.conn_id)
        job_run = self.job_run(job, self.pipeline.source.conn_id, self.pipeline.written_topics)

        def show(seen: Sequence[PartitionProgress]) -> dict[str, Any]:
            result = {"run_key": plan.run_key, "partitions": [each.to_json() for each in seen]}
            return push(context, PROGRESS_KEY, result)

        progress = job_run.run(show)
        result = show(progress)
        job_run.check(progress)
        return result
