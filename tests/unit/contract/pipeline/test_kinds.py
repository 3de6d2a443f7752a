from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from airflow_provider_kpipe import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
    PartitionScaling,
    RetryPolicy,
)
from airflow_provider_kpipe.contract.pipeline.declaration import PipelineError
from airflow_provider_kpipe.contract.pipeline.kinds import check_kinds


def pipeline(**changes: Any) -> KafkaPipeline:
    spec = {"name": "orders", "source": KafkaSource("orders"), "destination": KafkaDestination("out"), **changes}
    return KafkaPipeline(**spec)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"source": "orders"},
            "KafkaPipeline.source='orders' is not a KafkaSource: write source=KafkaSource(topic='or",
        ),
        ({"destination": "out"}, "is not a KafkaDestination: write destination=KafkaDestination(topic='out')"),
        ({"dead_letter": "x"}, "is not a KafkaDeadLetter: write dead_letter=KafkaDeadLetter(topic='x'), or None"),
        ({"dead_letter": KafkaDestination("x")}, "write dead_letter=KafkaDeadLetter(...), or None"),
        ({"retry": 3}, "KafkaPipeline.retry=3 is not a RetryPolicy: write retry=RetryPolicy(max_attempts=3)"),
        ({"retry": None}, "is not a RetryPolicy: write retry=RetryPolicy(...)"),
        ({"partitions": 3}, "write partitions=PartitionScaling(max_concurrent_partitions=3)"),
        (
            {"partitions": "parallelize_across_partitions"},
            "write partitions=PartitionScaling(execution_mode='parallelize_across_partitions')",
        ),
        (
            {"partitions": [0, 2]},
            "KafkaPipeline.partitions=[0, 2] is not a PartitionScaling: write partitions=Partition",
        ),
        ({"name": 5}, "KafkaPipeline.name=5: use a text"),
        ({"group_id": 5}, "KafkaPipeline.group_id=5: use a text, or None"),
        ({"on_fault": len}, "KafkaPipeline.on_fault=<built-in function len>: use a text, or None"),
    ],
    ids=repr,
)
def test_a_value_of_the_wrong_class_fails_where_it_is_written_with_the_class_to_use(
    changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(PipelineError) as refused:
        pipeline(**changes)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        (KafkaSource, {"conn_id": None}, "KafkaSource.conn_id=None: use a text"),
        (KafkaSource, {"correlation_header": 5}, "KafkaSource.correlation_header=5: use a text, or None"),
        (KafkaSource, {"correlation_header": ""}, "KafkaSource.correlation_header='' is empty: use a text, or None"),
        (KafkaSource, {"conn_id": ""}, "KafkaSource.conn_id='' is empty: use a text"),
        (KafkaDestination, {"conn_id": " "}, "KafkaDestination.conn_id=' ' is empty: use a text, or None"),
        (KafkaDestination, {"drop_headers": None}, "drop_headers=None must be a list of names of headers"),
        (KafkaDestination, {"drop_headers": [3]}, "drop_headers has 3, which is not a header name: use a text"),
        (KafkaDestination, {"conn_id": 5}, "KafkaDestination.conn_id=5: use a text, or None"),
        (KafkaDestination, {"keep_partition": "no"}, "KafkaDestination.keep_partition='no': use True or False"),
        (KafkaDestination, {"stamp_source": None}, "KafkaDestination.stamp_source=None: use True or False"),
    ],
)
def test_texts_and_switches_are_what_they_should_be(kind: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        kind("orders", **arguments)


def test_a_value_of_the_right_kind_is_left_alone() -> None:
    made = pipeline(
        dead_letter=KafkaDeadLetter("dead"), retry=RetryPolicy(3), partitions=PartitionScaling(), group_id="v2"
    )
    check_kinds(made, PipelineError)


def test_a_class_of_ours_may_be_derived_from() -> None:
    @dataclass(frozen=True, slots=True)
    class Cleansed(KafkaSource):
        pass

    assert pipeline(source=Cleansed("orders")).source.topic == "orders"
