"""Windows: the span between a start and an end."""

from __future__ import annotations

from datetime import datetime, timezone

from airflow_provider_kpipe.contract.offsets.limits import At, Latest, OffsetLimit

INTERVALS = (
    "a cron string as the schedule of a DAG gives each run a data interval without length: write "
    "schedule=CronDataIntervalTimetable('@hourly', timezone='UTC'), from airflow.sdk, for intervals that follow each "
    "other"
)


def check_window(start: OffsetLimit, end: OffsetLimit) -> None:
    """Raise ValueError for a window that cannot hold any record."""
    if isinstance(start, Latest):
        raise ValueError(
            "start='latest': a run ends at the end of the log as it is when the run is planned, so nothing would ever "
            "be read: use 'committed-or-latest', by which a new group begins there, or a moment"
        )
    if not isinstance(start, At) or not isinstance(end, At) or start.timestamp_ms < end.timestamp_ms:
        return
    if start == end:
        raise ValueError(f"start and end are one moment, {shown(start)}, and no record lies between them: {INTERVALS}")
    raise ValueError(f"start {shown(start)} is after end {shown(end)}: swap or correct them")


def shown(moment: At) -> str:
    return datetime.fromtimestamp(moment.timestamp_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
