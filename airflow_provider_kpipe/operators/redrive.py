"""Puts dead letters back: to the source topic, or through the segments to the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.contract.progress.progress import PartitionProgress
from airflow_provider_kpipe.contract.redrive.redrive import (
    TARGETS,
    Redrive,
    RedriveOrder,
    RedriveTarget,
    check_redrive,
    ledger_topic_of,
    redriving,
    written_topics,
)
from airflow_provider_kpipe.contract.redrive.result import PartitionRedrive, RedriveResult
from airflow_provider_kpipe.forms.fields import number_from_one
from airflow_provider_kpipe.forms.params import filled_in, start_of_form, with_fixed
from airflow_provider_kpipe.forms.redrive import FIELDS, RedriveRequest, check_start, target_of
from airflow_provider_kpipe.hooks.kpipe import KpipeHook
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.operators.spark_job import PROGRESS_KEY, SparkJobOperator
from airflow_provider_kpipe.planning.plan_check import check_of_redrive
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.redriving.planning import check_redrive_topics, make_redrive_plan
from airflow_provider_kpipe.redriving.preview import preview
from airflow_provider_kpipe.redriving.retention import check_redrive_retention
from airflow_provider_kpipe.redriving.selection import check_selection
from airflow_provider_kpipe.task_runtime.errors import failing_without_retry, first_contact
from airflow_provider_kpipe.task_runtime.frozen_state import frozen, record, recorded
from airflow_provider_kpipe.task_runtime.plan_xcom import push, run_key_of

if TYPE_CHECKING:
    from airflow.sdk import Context

ORDER_KEY = "kpipe_redrive"
RESULT_KEY = "kpipe_redrive_result"


class KpipeRedriveOperator(SparkJobOperator):
    """Redrives the dead letters that the params of the DAG run choose, each exactly once.

    The transaction that puts a letter back also enters it in a ledger topic, `<dead-letter topic>.redriven`: no second
    run, retry or overlapping run takes it again.

    :param pipeline: the pipeline whose dead letters these are
    :param target: 'source' puts records back into the source topic, for the pipeline's next run; 'output' passes them
        through the segments to the destination now. If left out, the form's default applies, or 'source'
    :param max_attempts: park a record that has become a dead letter so often. If left out, the form's default applies,
        or no limit
    :param each_letter: put a record back once for each of its letters, which several runs over it leave. Otherwise it
        goes back once, and its other letters count as `duplicate`. If left out, the form's default applies, or False
    :param parking_topic: the topic for parked records, as dead letters; without one they stay in their topic
    :param conn_id: Spark connection
    :param spark_conf: Spark properties, above those of the cluster; they are passed in a private file
    :param py_files: the modules that hold the segments: .py or .zip files, or package folders
    :param max_run_time: so long after the job was submitted, all partitions yield: the letters that they put back are
        done, and the next redrive takes the rest. The task then fails
    :param progress_interval: seconds between two looks at the progress, for the log and the XCom `progress`
    :param submit_options: more arguments for the Spark provider's SparkSubmitHook, such as executor_memory
    """

    ui_color = "#f3e3f7"

    def __init__(
        self,
        *,
        pipeline: KafkaPipeline,
        target: RedriveTarget | None = None,
        max_attempts: int | None = None,
        each_letter: bool | None = None,
        parking_topic: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        start = self._start_of_form()
        check_start(start, target=target, max_attempts=max_attempts, each_letter=each_letter)
        self.target = target or target_of(start.get("target"), "source")
        check_redrive(pipeline, self.target, parking_topic)
        self.max_attempts = number_from_one("max_attempts", max_attempts)
        self.each_letter = bool(each_letter)
        self.parking_topic = parking_topic

    def _start_of_form(self) -> dict[str, Any]:
        """Return the defaults of the DAG's params, before a user fills them in; leave out params without a default."""
        return start_of_form(self.params, FIELDS)

    def execute(self, context: Context) -> dict[str, Any]:
        with failing_without_retry():
            order = frozen(context, ORDER_KEY, RedriveOrder, lambda: self._make_order(context))
            check_of_redrive(order, self.pipeline, self.parking_topic)
            return self._dry_run(order, context) if order.plan.dry_run else self._run(order, context)

    def _settings(self) -> dict[str, str]:
        """Return the settings of the destination's cluster, which holds the dead letters."""
        return KpipeHook(self.pipeline.destination_conn_id).get_conn()

    def _make_order(self, context: Context) -> RedriveOrder:
        form = filled_in(dict(context["params"]), set(self.params), FIELDS)
        request = RedriveRequest.from_form(
            form,
            pipeline=self.pipeline.name,
            target=self.target,
            max_attempts=self.max_attempts,
            each_letter=self.each_letter,
        )
        check_redrive(self.pipeline, request.target, self.parking_topic)
        redrive = Redrive(
            target=request.target,
            selection=request.selection,
            max_attempts=request.max_attempts,
            parking_topic=self.parking_topic,
            ledger_topic=ledger_topic_of(self.pipeline),
            source_topic=self.pipeline.source.topic,
            each_letter=request.each_letter,
        )
        settings = self._settings()
        source_settings = KpipeHook(self.pipeline.source.conn_id).get_conn()
        with first_contact():
            check_redrive_topics(settings, source_settings, self.pipeline, redrive)
        plan = make_redrive_plan(
            settings,
            self.pipeline,
            request.start,
            request.end,
            run_key=run_key_of(context),
            dry_run=request.dry_run,
            created_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        )
        check_selection(settings, plan, redrive.selection)
        order = RedriveOrder(plan, redrive)
        check_redrive_retention(settings, self.pipeline, order)
        return order

    def _dry_run(self, order: RedriveOrder, context: Context) -> dict[str, Any]:
        result = preview(self._settings(), order)
        for sample in result.samples:
            self.log.info("%s (attempt %d): %s", sample.record, sample.attempt, sample.message)
        for each in result.partitions:
            if each.reason is not None:
                self.log.warning("The redrive of partition %d would stop: %s", each.partition, each.reason)
        return self._report(result, context)

    def _run(self, order: RedriveOrder, context: Context) -> dict[str, Any]:
        plan, redrive = order.plan, order.redrive
        if not plan.pending:
            return self._report(RedriveResult.of(order, []), context)
        done = recorded(context, RESULT_KEY, order)
        if done is not None:
            return push(context, PROGRESS_KEY, done)
        settings = self._settings()
        with Positions(settings) as positions:
            ensure_ledger(settings, positions.topic(plan.topic), redrive.ledger_topic)
        job = self.job(redriving(self.pipeline), plan, self.pipeline.destination_conn_id, redrive=redrive)
        # The destination's cluster holds the dead letters.
        job_run = self.job_run(job, self.pipeline.destination_conn_id, written_topics(self.pipeline, redrive))
        progress = job_run.run(lambda seen: _push(_result(order, seen), context))
        result = self._report(_result(order, progress), context)
        job_run.check(progress)
        record(context, RESULT_KEY, order, result)
        return result

    def _report(self, result: RedriveResult, context: Context) -> dict[str, Any]:
        """Log and push the result, also that of an incomplete run: the letters that it put back are done."""
        self.log.info(
            "%s of %r: %s",
            "Dry run" if result.dry_run else "Redrive",
            result.topic,
            ", ".join(f"{count:,} {outcome.replace('_', ' ')}" for outcome, count in result.outcomes.items()),
        )
        return _push(result, context)


def _result(order: RedriveOrder, progress: Sequence[PartitionProgress]) -> RedriveResult:
    return RedriveResult.of(order, map(PartitionRedrive.of, progress))


def _push(result: RedriveResult, context: Context) -> dict[str, Any]:
    return push(context, PROGRESS_KEY, result.to_json())


def redrive_params(
    target: RedriveTarget = "source",
    max_attempts: int | None = None,
    each_letter: bool = False,
    *,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, Param]:
    """Make the form, for `DAG(params=...)`; `target`, `max_attempts` and `each_letter` are its defaults.

    The form counts, even if it is left as it is: an operator with other values is refused. A user cannot fill in a
    field that is left out of the params.

    :param fixed: fields that always have this value, such as `{"pipeline": "orders"}`
    """
    form = {
        "occurred_from": Param(
            None, type=["null", "string"], format="date-time", section="Which dead letters", title="Failed from",
            description="Records that became dead letters at this moment or later. Fields left empty choose nothing.",
        ),
        "occurred_until": Param(
            None, type=["null", "string"], format="date-time", section="Which dead letters", title="Failed before",
            description="Records that became dead letters before this moment.",
        ),
        "exception_class": Param(
            None, type=["null", "string"], section="Which dead letters", title="Exception class",
            description="With its module or without: json.decoder.JSONDecodeError, or JSONDecodeError.",
        ),
        "pipeline": Param(
            None, type=["null", "string"], section="Which dead letters", title="Pipeline",
            description="The one that wrote them. Empty: the pipeline of this DAG. *: whoever wrote them.",
        ),
        "record": Param(
            None, type=["null", "string"], section="Which dead letters", title="One record",
            description="Where it was read: topic, partition and offset, such as orders-3-1042.",
        ),
        "start_offsets": Param(
            None, type=["null", "object"], section="Range of the dead-letter topic", title="First offsets",
            description='One for each partition, such as {"0": 1200, "1": 900}. Empty: from its beginning.',
        ),
        "end_offsets": Param(
            None, type=["null", "object"], section="Range of the dead-letter topic", title="End offsets",
            description="One for each partition, after the last one wanted. Empty: up to its end as it is now.",
        ),
        "target": Param(
            target, type="string", enum=list(TARGETS), section="What to do", title="Where to",
            description="source: back into the source topic. output: through the segments, straight to the output.",
        ),
        "max_attempts": Param(
            max_attempts, type=["null", "integer", "string"], section="What to do", title="At most so many attempts",
            description="Records that became dead letters so often are parked. Empty: no limit.",
        ),
        "each_letter": Param(
            each_letter, type="boolean", section="What to do", title="Each letter",
            description="Several runs leave several letters of one record. Off: it goes back once, and the others are "
            "counted as duplicate. On: it goes back as often.",
        ),
        "dry_run": Param(
            False, type="boolean", section="What to do", title="Only count",
            description="Show how many there are, of which kinds, and the first few; write nothing.",
        ),
    }  # fmt: skip
    return with_fixed(form, fixed)
