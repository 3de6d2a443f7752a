"""Freezes what a person asked for in the form of a backfill DAG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Param

from airflow_provider_kpipe.contract.backfill import FIELDS, BackfillRequest
from airflow_provider_kpipe.kafka.planner import Wishes
from airflow_provider_kpipe.operators.forms import filled_in
from airflow_provider_kpipe.operators.plan import KpipePlanOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class KpipeBackfillPlanOperator(KpipePlanOperator):
    """A plan whose wishes are the params of the DAG run. Airflow checks neither dates nor unknown fields: we do."""

    template_fields = ()

    def wishes(self, context: Context) -> tuple[Wishes, bool, bool]:
        request = BackfillRequest.from_form(filled_in(dict(context["params"]), set(self.params), FIELDS))
        wishes = Wishes(
            start=request.start, end=request.end, partitions=request.partitions, max_records=request.max_records
        )
        return wishes, request.publish, request.dry_run


def backfill_params() -> dict[str, Param]:
    """The form, for `DAG(params=...)`."""
    return {
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
            description="Commit to the pipeline's own consumer group, forwards only. Off: it stays where it is.",
        ),
    }  # fmt: skip
