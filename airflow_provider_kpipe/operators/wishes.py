"""The wishes of a plan task: from the arguments in its DAG, or from the data interval in Airflow's own backfill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_provider_kpipe.contract.offsets.limits import At, OffsetLimit, parse_limit
from airflow_provider_kpipe.contract.offsets.windows import INTERVALS, shown
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.planning.ranges import Wishes
from airflow_provider_kpipe.task_runtime.templates import rendered, whole_number, whole_numbers

if TYPE_CHECKING:
    from airflow.sdk import Context


def wishes_of(said: Mapping[str, Any]) -> Wishes:
    """Read the arguments of a plan task; use the default for one that is left out."""
    return Wishes(
        start=parse_limit(rendered(said.get("start", "committed")), "start"),
        end=parse_limit(rendered(said.get("end", "latest")), "end"),
        partitions=whole_numbers(said.get("partitions"), "partitions"),
        max_records=whole_number(said.get("max_records"), "max_records"),
        max_records_per_partition=whole_number(said.get("max_records_per_partition"), "max_records_per_partition"),
    )


def is_backfill(context: Context) -> bool:
    """Tell whether Airflow's own backfill has started the run, or has taken it over."""
    # Tasks see an enumeration whose members equal their text.
    return getattr(context.get("dag_run"), "run_type", None) == "backfill"


def of_interval(wishes: Wishes, context: Context) -> Wishes:
    """Return wishes for the data interval of a run; keep a start or an end that is a moment already.

    Ignore the caps: no later run would read the records that they leave out of an interval.
    """
    start, end = (
        wish if isinstance(wish, At) else _moment(context, side)
        for side, wish in (("start", wishes.start), ("end", wishes.end))
    )
    if start == end:
        raise PlanError(
            f"the run is a backfill, and its data interval is empty, so there is nothing to read: {INTERVALS}; or "
            "fill in the form of a DAG with kpipe_backfill_task_group"
        )
    return Wishes(start=start, end=end, partitions=wishes.partitions)


def check_interval(wishes: Wishes, context: Context) -> None:
    """Refuse a start at a data interval without a length, as it is the moment of the run itself.

    If the end is a moment too, the two make a window, which is checked elsewhere.
    """
    if not isinstance(wishes.start, At) or isinstance(wishes.end, At):
        return
    moments = {getattr(context.get("dag_run"), f"data_interval_{side}", None) for side in ("start", "end")}
    if None in moments or {parse_limit(each, "data_interval") for each in moments} != {wishes.start}:
        return
    raise PlanError(
        f"the data interval is empty (it starts and ends at {shown(wishes.start)}), so nothing before it would ever be "
        f"read: {INTERVALS}; or leave start out, to resume at the group's offsets"
    )


def _moment(context: Context, side: str) -> OffsetLimit:
    moment = getattr(context["dag_run"], f"data_interval_{side}", None)
    if moment is None:
        raise PlanError(
            f"the run is a backfill without a data interval, so nothing says which records it is about: {INTERVALS}; "
            "or fill in the form of a DAG with kpipe_backfill_task_group"
        )
    return parse_limit(moment, f"data_interval_{side}")
