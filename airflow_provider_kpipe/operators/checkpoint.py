"""Publishes the offsets that a run has stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_provider_kpipe.checkpointing.committer import publish
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, check_pipeline
from airflow_provider_kpipe.contract.progress.checkpoint import (
    CHECKPOINT_KEY,
    COMMITTED_KEY,
    Checkpoint,
    CommittedOffsets,
)
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry
from airflow_provider_kpipe.task_runtime.frozen_state import record, recorded
from airflow_provider_kpipe.task_runtime.plan_xcom import last_committed, push, read_plan

if TYPE_CHECKING:
    from airflow.sdk import Context


RECORD_KEY = "kpipe_checkpoint"


class KpipeCheckpointOperator(BaseOperator):
    """Commits the stored offsets of a plan to its consumer group, and records them in XCom.

    It runs even if the run task failed: it commits the completed prefix of each partition, and then fails if the run
    did not complete. Running it again changes nothing: after a complete run it returns its own record, as later
    runs overwrite the one in Kafka.

    :param pipeline: the pipeline of the plan
    :param plan: the plan, usually the plan task's output
    """

    template_fields: Sequence[str] = ("plan",)
    ui_color = "#e3e8fb"

    def __init__(self, *, pipeline: KafkaPipeline, plan: Any, **kwargs: Any) -> None:
        super().__init__(**{"trigger_rule": TriggerRule.ALL_DONE, **kwargs})
        check_pipeline(pipeline)
        self.pipeline = pipeline
        self.plan = plan

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """Set the trigger rule here too: for a mapped operator, Airflow does not call `__init__`."""
        return super().partial(**{"trigger_rule": TriggerRule.ALL_DONE, **kwargs})

    def execute(self, context: Context) -> dict[str, Any]:
        with failing_without_retry():
            plan = read_plan(self.plan, self.pipeline)
            if plan.dry_run:
                raise AirflowSkipException("Dry run: nothing is committed")
            done = recorded(context, RECORD_KEY, plan)
            if done is not None:
                self.remember(context, Checkpoint.from_json(done))
                return push(context, CHECKPOINT_KEY, done)
            in_transactions = self.pipeline.delivery == "exactly_once"
            destination = KpipeHook(self.pipeline.destination_conn_id).get_conn() if in_transactions else None
            checkpoint = publish(KpipeHook(self.pipeline.source.conn_id).get_conn(), plan, destination)
        self.report(checkpoint)
        document = push(context, CHECKPOINT_KEY, checkpoint.to_json())
        with failing_without_retry():
            self.remember(context, checkpoint)
        if not checkpoint.complete:
            stopped = [each for each in checkpoint.partitions if not each.complete]
            # Trying the checkpoint again would not advance the run.
            raise AirflowFailException(
                f"{len(stopped)} of {len(checkpoint.partitions)} partitions of {plan.topic!r} stopped before their "
                "end; what they had completed is committed, and the next run goes on from there. First: "
                f"partition {stopped[0].partition}: {stopped[0].reason or 'not finished'}"
            )
        self.check_faults(checkpoint)
        record(context, RECORD_KEY, plan, document)
        return document

    def remember(self, context: Context, checkpoint: Checkpoint) -> None:
        """Push the offsets of the pipeline's group to XCom, also for partitions that only earlier runs have read."""
        if checkpoint.group != self.pipeline.group:
            return
        earlier = last_committed(context, self.task_id, self.pipeline)
        known = CommittedOffsets(checkpoint.group, checkpoint.topic, {**earlier, **checkpoint.committed})
        if known.offsets:
            push(context, COMMITTED_KEY, known.to_json())

    def check_faults(self, checkpoint: Checkpoint) -> None:
        """Fail if too few records passed, even if the run was read to its end."""
        counts = checkpoint.totals
        reason = self.pipeline.budget.exceeded_by(counts.dead_lettered, counts.read, counts.skipped)
        if reason is not None:
            raise AirflowFailException(
                f"{reason}; every range of {checkpoint.topic!r} was read to its end, and that is committed: fix the "
                "cause, then redrive the dead letters, or read what was skipped again with a backfill"
            )

    def report(self, checkpoint: Checkpoint) -> None:
        for each in checkpoint.partitions:
            self.log.info(
                "partition %d: committed %s of [%d, %d), read %d, written %d, dead letters %d",
                each.partition,
                each.committed,
                each.start,
                each.end,
                each.counts.read,
                each.counts.written,
                each.counts.dead_lettered,
            )
        counted = asdict(checkpoint.totals)
        named, _ = counted.pop("named"), counted.pop("causes")
        self.log.info(
            "all of %r: %s",
            checkpoint.topic,
            ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in (*counted.items(), *named.items())),
        )
        for cause in checkpoint.totals.causes:
            self.log.info("could not pass: %s", cause.shown(checkpoint.topic))
