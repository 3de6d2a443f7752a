"""Operator that freezes the ranges that a user asked for in the form of a backfill DAG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from airflow_provider_kpipe.contract.pipeline.declaration import KafkaPipeline
from airflow_provider_kpipe.forms.backfill import FIELDS, BackfillRequest, check_start
from airflow_provider_kpipe.forms.params import filled_in, start_of_form, with_fixed
from airflow_provider_kpipe.operators.plan import KpipePlanOperator
from airflow_provider_kpipe.planning.ranges import Wishes

if TYPE_CHECKING:
    from airflow.sdk import Context


DECIDED_BY_FORM = ("start", "end", "partitions", "max_records", "max_records_per_partition", "publish", "dry_run")


class KpipeBackfillPlanOperator(KpipePlanOperator):
    """Operator that plans the wishes in the DAG run's params. It checks dates and unknown fields; Airflow does not."""

    template_fields = ()

    def __init__(self, *, pipeline: KafkaPipeline, **kwargs: Any) -> None:
        given = [name for name in DECIDED_BY_FORM if name in kwargs]
        if given:
            raise TypeError(
                f"{type(self).__name__} takes no {given[0]!r} (it is {kwargs[given[0]]!r}): the form of the DAG run "
                "decides; leave it out, or use KpipePlanOperator"
            )
        super().__init__(pipeline=pipeline, **kwargs)
        check_start(start_of_form(self.params, FIELDS))

    def wishes(self, context: Context) -> tuple[Wishes, bool, bool]:
        request = BackfillRequest.from_form(filled_in(dict(context["params"]), set(self.params), FIELDS))
        wishes = Wishes(
            start=request.start, end=request.end, partitions=request.partitions, max_records=request.max_records
        )
        return wishes, request.publish, request.dry_run


def backfill_params(*, fixed: Mapping[str, Any] | None = None) -> dict[str, Param]:
    """Make the form, for `DAG(params=...)`. A user cannot fill in a field that is left out of the params.

    :param fixed: fields that always have this value, such as `{"publish": False}`
    """
    form = {
        "window_start": Param(
            None, type=["null", "string"], format="date-time", section="Time window", title="From",
            description="Records from this moment on. Leave it empty to give offsets instead.",
        ),
        "window_end": Param(
            None, type=["null", "string"], format="date-time", section="Time window", title="Until",
            description="Records before this moment. Empty: up to the end of the topic as it is now.",
        ),
        "start_offsets": Param(
            None, type=["null", "object"], section="Offsets", title="First offsets",
            description='One for each partition, such as {"0": 1200, "1": 900}.',
        ),
        "end_offsets": Param(
            None, type=["null", "object"], section="Offsets", title="End offsets",
            description="One for each partition, after the last record wanted. Empty: up to the end of the topic.",
        ),
        "partitions": Param(
            None, type=["null", "string", "array"], section="Limits", title="Partitions",
            description="Only these, such as 0, 2, 5. Empty: all.",
        ),
        "max_records": Param(
            None, type=["null", "integer", "string"], section="Limits", title="At most so many records",
            description="Shared fairly among the partitions. Empty: no limit.",
        ),
        "dry_run": Param(
            False, type="boolean", section="What to do", title="Only plan",
            description="Show what would be read, and read nothing.",
        ),
        "publish": Param(
            False, type="boolean", section="What to do", title="Move the live group",
            description="Commit to the pipeline's own group: never back, never over unread records. "
            "Off: the live group does not move.",
        ),
    }  # fmt: skip
    return with_fixed(form, fixed)
