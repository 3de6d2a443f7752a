"""Check of windows of time in which nothing was found: they may not have held any records."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from airflow_provider_kpipe.contract.offsets.limits import At
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.offsets.windows import shown
from airflow_provider_kpipe.exceptions import PlanError
from airflow_provider_kpipe.kafka.positions import Positions, Topic
from airflow_provider_kpipe.planning.ranges import Wishes


def check_inside_log(
    settings: Mapping[str, str],
    topic: Topic,
    isolation_level: str,
    wishes: Wishes,
    ranges: Sequence[PartitionRange],
    *,
    now_ms: float | None = None,
) -> None:
    """Raise PlanError for a window that lies before the first record of the topic, or in the future.

    Both a quiet hour without records and a group that is past the end already are accepted.
    """
    if wishes.continues_group or any(map(len, ranges)):
        return
    if isinstance(wishes.start, At) and wishes.start.timestamp_ms > (now_ms or time.time() * 1000):
        raise PlanError(
            f"the window starts at {shown(wishes.start)}, which is yet to come by the clock of this host, and topic "
            f"{topic.name!r} holds no record from then on: choose a moment that has passed"
        )
    if isinstance(wishes.end, At) and _is_before_the_log(settings, topic, isolation_level, wishes.end, ranges):
        raise PlanError(
            f"the window ends at {shown(wishes.end)}, and topic {topic.name!r} holds no record from before: they have "
            "left the topic, or were never there; choose a later window, or have the schedule begin later (start_date, "
            "catchup=False)"
        )


def _is_before_the_log(
    settings: Mapping[str, str], topic: Topic, isolation_level: str, end: At, ranges: Sequence[PartitionRange]
) -> bool:
    """Tell whether every record of these partitions is younger than the end; False if they hold none at all."""
    with Positions(settings) as positions:
        ends = positions.latest(topic, isolation_level)
        first = positions.at(topic, 0, isolation_level, ends)
        after = positions.at(topic, end.timestamp_ms, isolation_level, ends)
    partitions = [each.partition for each in ranges if first[each.partition] < ends[each.partition]]
    return bool(partitions) and all(after[each] == first[each] for each in partitions)
