"""A gate that opens when a pipeline's partitions are drained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk import conf as airflow_conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_kpipe.checkpointing.draining import PartitionDrain, look, summary
from airflow_provider_kpipe.contract.offsets.limits import parse_limit
from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline, check_pipeline
from airflow_provider_kpipe.contract.plan import Plan
from airflow_provider_kpipe.contract.progress.drain_target import DrainTarget
from airflow_provider_kpipe.exceptions import KpipeError, UnreachableError
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry, first_contact
from airflow_provider_kpipe.task_runtime.plan_xcom import read_plan
from airflow_provider_kpipe.task_runtime.templates import is_template, rendered, whole_numbers
from airflow_provider_kpipe.triggers.partitions_drained import PartitionsDrainedTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class KpipePartitionsDrainedSensor(BaseSensorOperator):
    """Waits until the committed offsets of a pipeline's group have reached a target.

    Poking or deferred, it makes the same checks, fails for the same reasons and returns the same XCom.

    :param pipeline: the pipeline whose group is watched
    :param until: 'latest' (the end of the topic at each look), a moment (all records before it), an offset per
        partition, or a plan, usually a plan task's output
    :param partitions: only these partitions
    :param group_id: a group to watch instead of the pipeline's, or the plan's
    """

    template_fields: Sequence[str] = ("until", "partitions", "group_id")
    ui_color = "#f6ecf9"

    def __init__(
        self,
        *,
        pipeline: KafkaPipeline,
        until: Any = "latest",
        partitions: Sequence[int] | None = None,
        group_id: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_pipeline(pipeline)
        self.pipeline = pipeline
        self.until = until
        self.partitions = partitions
        self.group_id = group_id
        self.deferrable = deferrable
        self._has_answered = False
        if not any(map(is_template, (until, partitions, group_id))):
            self.target()

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once. If deferrable, defer from within the first poke: Airflow then applies soft_fail and never_fail."""
        # In reschedule mode, each poke is a new instance.
        self._has_answered = self._has_answered or bool(context and context.get("task_reschedule_count"))
        found = self.look_once()
        if not found.is_done and self.is_deferrable:
            self.defer(
                trigger=PartitionsDrainedTrigger(
                    conn_id=self.pipeline.source.conn_id,
                    target=self.target().to_json(),
                    poke_interval=self.poke_interval,
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return found

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        if "error" in event:
            raise AirflowFailException(event["error"])
        return event

    @property
    def is_deferrable(self) -> bool:
        if self.deferrable is None:
            return airflow_conf.getboolean("operators", "default_deferrable", fallback=False)
        return self.deferrable

    def look_once(self) -> PokeReturnValue:
        with failing_without_retry(), first_contact():
            target = self.target()
            try:
                drains = look(KpipeHook(self.pipeline.source.conn_id).get_conn(), target, self.plan())
            except KpipeError as error:
                if not error.retriable or (isinstance(error, UnreachableError) and self._is_first_contact):
                    raise
                self.log.warning("Kafka cannot be asked now: %s", error)
                return PokeReturnValue(is_done=False)
        self._has_answered = True
        self.report(drains)
        return PokeReturnValue(is_done=all(each.drained for each in drains), xcom_value={"partitions": summary(drains)})

    @property
    def _is_first_contact(self) -> bool:
        """True if neither a plan nor an earlier look shows that the connection has ever worked."""
        return not self._has_answered and self.plan() is None

    def plan(self) -> Plan | None:
        """Return the plan to wait for; None if `until` is something else."""
        until = rendered(self.until)
        return read_plan(until, self.pipeline) if isinstance(until, Mapping) and "ranges" in until else None

    def target(self) -> DrainTarget:
        source, plan = self.pipeline.source, self.plan()
        if self.group_id is not None and not (isinstance(self.group_id, str) and self.group_id.strip()):
            raise ValueError(f"group_id={self.group_id!r}: use the name of a consumer group, or leave it out")
        partitions = whole_numbers(self.partitions, "partitions")
        if plan is not None:
            return DrainTarget.of_plan(plan, group=self.group_id, partitions=partitions)
        return DrainTarget.of(
            parse_limit(rendered(self.until), "until"),
            group=self.group_id or self.pipeline.group,
            topic=source.topic,
            isolation_level=source.isolation_level,
            partitions=partitions,
        )

    def report(self, drains: Sequence[PartitionDrain]) -> None:
        for each in drains:
            if not each.drained:
                self.log.info("partition %d is at %d of %d", each.partition, each.committed, each.target)
