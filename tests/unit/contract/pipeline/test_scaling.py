"""Options that contradict each other are refused when the DAG is parsed."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_kpipe import KafkaDestination, KafkaPipeline, KafkaSource, PartitionScaling
from airflow_provider_kpipe.contract.pipeline.scaling import ScalingError

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"execution_mode": "fast"}, "execution_mode='fast': use one of 'preserve_partition_order'"),
    ({"rebalance_mode": "drain"}, "rebalance_mode='drain': use one of 'drain_and_yield'"),
    ({"max_concurrent_partitions": 0}, "max_concurrent_partitions=0: use a whole number from 1, or None"),
    ({"max_concurrent_partitions": True}, "max_concurrent_partitions=True"),
    ({"max_in_flight_per_partition": 0}, "max_in_flight_per_partition=0: use a whole number from 1 to 1000"),
    ({"max_in_flight_per_partition": 2}, "only with execution_mode='relax_ordering_within_partition'"),
    (
        {"max_in_flight_per_partition": 2, "execution_mode": "parallelize_across_partitions"},
        "only with execution_mode='relax_ordering_within_partition'",
    ),
    ({"emit_partition_execution_events": "no"}, "emit_partition_execution_events='no': use True or False"),
    (
        {"emit_partition_execution_events": False, "events_topic": "events"},
        "nothing would be written to it",
    ),
]


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=str)
def test_an_impossible_scaling_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ScalingError, match=said.replace("(", r"\(")):
        PartitionScaling(**options)


def test_the_defaults_are_as_documented() -> None:
    scaling = PartitionScaling()
    assert scaling.execution_mode == "preserve_partition_order"
    assert (scaling.max_concurrent_partitions, scaling.max_in_flight_per_partition) == (None, 1)
    assert scaling.drains
    assert not scaling.relaxed
    assert scaling.emit_partition_execution_events


def test_it_travels_with_its_pipeline() -> None:
    scaling = PartitionScaling("relax_ordering_within_partition", 3, 50, "stop_accepting_new_work_and_yield", True, "e")
    pipeline = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out"), partitions=scaling)
    assert KafkaPipeline.from_json(pipeline.to_json()).partitions == scaling
