"""Options for the work on the partitions of a run: its order, how many at once, and how they are given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from airflow_provider_kpipe.contract.pipeline.choices import check_choice

ExecutionMode: TypeAlias = Literal[
    "preserve_partition_order", "parallelize_across_partitions", "relax_ordering_within_partition"
]
RebalanceMode: TypeAlias = Literal["drain_and_yield", "stop_accepting_new_work_and_yield"]

MOST_IN_FLIGHT = 1_000


class ScalingError(ValueError):
    """Options that contradict each other, or mean nothing."""


@dataclass(frozen=True, slots=True)
class PartitionScaling:
    """The options of partition execution.

    :param execution_mode: `preserve_partition_order` works on partitions side by side, one in each Spark task;
        `parallelize_across_partitions` has each task work on several at once, so that partitions which wait do not
        idle the cores; `relax_ordering_within_partition` works on several records of one partition at once, and may
        cut a long range into pieces for several tasks
    :param max_concurrent_partitions: no more partitions than this are worked on at any time; None is no limit
    :param max_in_flight_per_partition: the number of records of a partition that are processed at once; more than
        one needs the relaxed mode
    :param rebalance_mode: the end of the chunk in flight of a partition that is given up: `drain_and_yield`
        finishes and stores it, `stop_accepting_new_work_and_yield` gives it up
    :param emit_partition_execution_events: logs the events of each partition
    :param events_topic: a topic that takes the events too, as JSON records keyed by partition
    """

    execution_mode: ExecutionMode = "preserve_partition_order"
    max_concurrent_partitions: int | None = None
    max_in_flight_per_partition: int = 1
    rebalance_mode: RebalanceMode = "drain_and_yield"
    emit_partition_execution_events: bool = True
    events_topic: str | None = None

    def __post_init__(self) -> None:
        check_choice("execution_mode", self.execution_mode, ExecutionMode, ScalingError)
        check_choice("rebalance_mode", self.rebalance_mode, RebalanceMode, ScalingError)
        most = self.max_concurrent_partitions
        if most is not None and (type(most) is not int or most < 1):
            raise ScalingError(f"max_concurrent_partitions={most!r}: use a whole number from 1, or None for no limit")
        in_flight = self.max_in_flight_per_partition
        if type(in_flight) is not int or not 1 <= in_flight <= MOST_IN_FLIGHT:
            raise ScalingError(
                f"max_in_flight_per_partition={in_flight!r}: use a whole number from 1 to {MOST_IN_FLIGHT}"
            )
        if in_flight > 1 and not self.relaxed:
            raise ScalingError(
                f"max_in_flight_per_partition={in_flight} with execution_mode={self.execution_mode!r}: records of one "
                "partition are processed at once only with execution_mode='relax_ordering_within_partition'; choose "
                "that, or leave it at 1"
            )
        if type(self.emit_partition_execution_events) is not bool:
            raise ScalingError(
                f"emit_partition_execution_events={self.emit_partition_execution_events!r}: use True or False"
            )
        if self.events_topic is not None and not self.emit_partition_execution_events:
            raise ScalingError(
                f"events_topic={self.events_topic!r} with emit_partition_execution_events=False: nothing would be "
                "written to it; leave one of the two out"
            )

    @property
    def relaxed(self) -> bool:
        return self.execution_mode == "relax_ordering_within_partition"

    @property
    def interleaves(self) -> bool:
        return self.execution_mode == "parallelize_across_partitions"

    @property
    def drains(self) -> bool:
        return self.rebalance_mode == "drain_and_yield"
