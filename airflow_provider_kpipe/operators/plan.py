"""Freezes the ranges that one run will read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, check_pipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.operators.wishes import check_interval, is_backfill, of_interval, wishes_of
from airflow_provider_kpipe.planning.letter_room import check_letter_room
from airflow_provider_kpipe.planning.make_plan import make_plan
from airflow_provider_kpipe.planning.needed_topics import check_needed_topics
from airflow_provider_kpipe.planning.ranges import Wishes
from airflow_provider_kpipe.planning.retention import check_retention
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry, first_contact
from airflow_provider_kpipe.task_runtime.frozen_state import frozen
from airflow_provider_kpipe.task_runtime.plan_xcom import last_committed, run_key_of
from airflow_provider_kpipe.task_runtime.templates import is_template

if TYPE_CHECKING:
    from airflow.sdk import Context

PLAN_KEY = "kpipe_plan"
# A scheduled run that a backfill takes over already has a plan, under the pipeline's own group.
BACKFILL_PLAN_KEY = "kpipe_backfill_plan"


class KpipePlanOperator(BaseOperator):
    """Resolves wishes about offsets into ranges, once per DAG run, and returns the plan as XCom.

    In a run of Airflow's own backfill it reads the data interval, under a group of its own.

    :param pipeline: the pipeline to run
    :param start: where to start: 'committed' (the default; 'committed-or-earliest', 'committed-or-latest' and
        'committed-or-error' choose for a partition without a committed offset), 'earliest', a moment,
        or an offset per partition
    :param end: where to end: 'latest', a moment, or an offset per partition
    :param partitions: only these partitions
    :param max_records: no more offsets than this in one run, shared fairly among the partitions
    :param max_records_per_partition: no more offsets than this in one partition
    :param publish: let a run that does not start at the committed offsets move the pipeline's group; otherwise such a
        run has a group of its own
    :param dry_run: plan and log the plan, but skip the run and the checkpoint
    :param checkpoint_task_id: the task whose earlier records distinguish a new group from one whose offsets have
        expired
    """

    template_fields: Sequence[str] = ("start", "end", "partitions", "max_records", "max_records_per_partition")
    ui_color = "#e8f4f0"

    def __init__(
        self,
        *,
        pipeline: KafkaPipeline,
        start: Any = "committed",
        end: Any = "latest",
        partitions: Sequence[int] | str | None = None,
        max_records: int | str | None = None,
        max_records_per_partition: int | str | None = None,
        publish: bool = False,
        dry_run: bool = False,
        checkpoint_task_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_pipeline(pipeline)
        self.pipeline = pipeline
        self.start = start
        self.end = end
        self.partitions = partitions
        self.max_records = max_records
        self.max_records_per_partition = max_records_per_partition
        self.publish = publish
        self.dry_run_wanted = dry_run
        self.checkpoint_task_id = checkpoint_task_id
        self._check_written()

    def _check_written(self) -> None:
        """Refuse invalid wishes while the DAG is parsed; the task reads templates when it runs."""
        said = {name: getattr(self, name) for name in KpipePlanOperator.template_fields}
        wishes_of({name: value for name, value in said.items() if not is_template(value)})
        for name, value in (("publish", self.publish), ("dry_run", self.dry_run_wanted)):
            if type(value) is not bool:
                raise ValueError(f"{name}={value!r}: use True or False")

    def execute(self, context: Context) -> dict[str, Any]:
        with failing_without_retry():
            key = BACKFILL_PLAN_KEY if is_backfill(context) else PLAN_KEY
            plan = frozen(context, key, Plan, lambda: self.make_plan(context))
        self.report(plan)
        return plan.to_json()

    def make_plan(self, context: Context) -> Plan:
        wishes, publish, dry_run = self.wishes(context)
        settings = KpipeHook(self.pipeline.source.conn_id).get_conn()
        written_to = KpipeHook(self.pipeline.destination_conn_id).get_conn()
        published = self.published(context)
        # If an earlier run has used this connection, a broker that does not answer now is only an outage.
        with nullcontext() if published else first_contact():
            check_needed_topics(self.pipeline, settings, written_to)
        plan = make_plan(
            self.pipeline,
            wishes,
            settings,
            run_key=run_key_of(context),
            publish=publish,
            dry_run=dry_run,
            created_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            published=published,
        )
        check_retention(self.pipeline, settings, written_to, plan)
        check_letter_room(self.pipeline, settings, written_to)
        return plan

    def published(self, context: Context) -> dict[int, int]:
        """Return the offsets that earlier DAG runs have committed to the pipeline's group."""
        if self.checkpoint_task_id is None:
            return {}
        return last_committed(context, self.checkpoint_task_id, self.pipeline)

    def wishes(self, context: Context) -> tuple[Wishes, bool, bool]:
        """Return the wishes, and the flags `publish` and `dry_run`."""
        wishes = wishes_of({name: getattr(self, name) for name in KpipePlanOperator.template_fields})
        if is_backfill(context):
            self.log.info("The run is a backfill: it reads its data interval under a group of its own")
            return of_interval(wishes, context), False, self.dry_run_wanted
        check_interval(wishes, context)
        return wishes, self.publish, self.dry_run_wanted

    def report(self, plan: Plan) -> None:
        self.log.info(
            "Plan %s: %s offsets of %r in %d of %d partitions, group %r%s",
            plan.run_key,
            f"{plan.offsets_planned:,}",
            plan.topic,
            len(plan.pending),
            len(plan.ranges),
            plan.group,
            " (dry run)" if plan.dry_run else "",
        )
        for each in plan.ranges:
            self.log.info("  partition %d: [%d, %d) %s offsets", each.partition, each.start, each.end, f"{len(each):,}")
        if not plan.pending:
            self.log.info("There is nothing to read: the run will be skipped")
