from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError, encode
from airflow_provider_kpipe.contract.pipeline.declaration import (
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
    PipelineError,
)
from airflow_provider_kpipe.contract.pipeline.scaling import PartitionScaling

TOPICS = st.from_regex(r"[a-zA-Z0-9_-]{1,249}", fullmatch=True)
PATHS = st.from_regex(r"[a-z_]{1,5}(\.[a-z]{1,5}){0,2}:[A-Z][a-z]{0,5}", fullmatch=True)


def pipeline(**changes: Any) -> KafkaPipeline:
    declared: dict[str, Any] = {
        "name": "orders",
        "source": KafkaSource(topic="orders"),
        "destination": KafkaDestination(topic="orders.enriched"),
        "dead_letter": KafkaDeadLetter(topic="orders.dead"),
    }
    return KafkaPipeline(**{**declared, **changes})


@st.composite
def pipelines(draw: Callable[..., Any]) -> KafkaPipeline:
    source, destination, dead = draw(st.lists(TOPICS, min_size=3, max_size=3, unique=True))
    delivery = draw(st.sampled_from(["exactly_once", "at_least_once"]))
    return KafkaPipeline(
        name=draw(st.text(min_size=1).filter(str.strip)),
        source=KafkaSource(source, "kafka", draw(st.sampled_from(["read_committed", "read_uncommitted"]))),
        destination=KafkaDestination(
            destination,
            draw(st.none() | st.text(min_size=1).filter(str.strip)) if delivery == "at_least_once" else None,
            keep_partition=draw(st.booleans()),
            keep_timestamp=draw(st.booleans()),
        ),
        segments=draw(st.lists(PATHS, max_size=3)),
        dead_letter=draw(st.none() | st.just(KafkaDeadLetter(dead))),
        group_id=draw(st.none() | st.text(min_size=1).filter(str.strip)),
        delivery=delivery,
        chunk_records=draw(st.integers(1)),
        chunk_seconds=draw(st.floats(0.001, 600)),
        segment_timeout=draw(st.none() | st.floats(0.001, 600)),
        worker_memory_mb=draw(st.none() | st.integers(512)),
    )


@given(declared=pipelines())
@settings(deadline=None, max_examples=100)
def test_a_pipeline_comes_back_from_json_as_it_went(declared: KafkaPipeline) -> None:
    assert KafkaPipeline.from_json(json.loads(json.dumps(declared.to_json()))) == declared


def test_the_defaults_are_the_careful_ones() -> None:
    declared = pipeline()
    assert declared.delivery == "exactly_once"
    assert declared.source.isolation_level == "read_committed"
    assert declared.source.on_data_loss == "stop_partition"
    assert declared.source.conn_id == declared.destination_conn_id == "kafka_default"


def test_the_group_is_the_name_unless_it_is_given() -> None:
    assert pipeline().group == "orders"
    assert pipeline(group_id="orders-v2").group == "orders-v2"


def test_segments_may_be_any_sequence_of_import_paths() -> None:
    paths = ["orders_pipeline:parse", "pkg.sub.module:Enrich", "a:B.c"]
    assert pipeline(segments=paths).segments == tuple(paths)


def test_at_least_once_may_go_from_one_cluster_to_another() -> None:
    declared = pipeline(destination=KafkaDestination("out", conn_id="kafka_b"), delivery="at_least_once")
    assert declared.destination_conn_id == "kafka_b"


def test_exactly_once_may_name_the_same_connection_twice() -> None:
    assert pipeline(destination=KafkaDestination("out", conn_id="kafka_default")).delivery == "exactly_once"


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("no name", {"name": ""}, "KafkaPipeline.name='' is empty: use a text"),
    ("a blank name", {"name": "  "}, "KafkaPipeline.name='  ' is empty"),
    ("a group of an unset variable", {"group_id": ""}, "KafkaPipeline.group_id='' is empty: use a text, or None"),
    ("no list of segments", {"segments": None}, "segments=None must be a list of import paths"),
    ("segments by name", {"segments": {"a:b": 1}}, "segments={'a:b': 1} must be a list of import paths"),
    ("one string of segments", {"segments": "a:b"}, "segments='a:b' must be a list of import paths"),
    ("a segment that is no path", {"segments": ["a:b", "parse"]}, "segment 'parse' of pipeline 'orders'"),
    ("a segment with a dot only", {"segments": ["orders.parse"]}, "use 'module:name'"),
    ("a segment with two colons", {"segments": ["a:b:c"]}, "segment 'a:b:c'"),
    ("a segment with a space", {"segments": ["a: b"]}, "segment 'a: b'"),
    ("an empty segment", {"segments": [""]}, "segment ''"),
    ("a segment that starts with a digit", {"segments": ["1a:b"]}, "segment '1a:b'"),
    ("a function as segment", {"segments": [len]}, "not an import path"),
    ("an unknown delivery", {"delivery": "at_most_once"}, "use one of 'exactly_once', 'at_least_once'"),
    ("no delivery", {"delivery": None}, "KafkaPipeline.delivery=None"),
    ("a destination equal to the source", {"destination": KafkaDestination("orders")}, "as destination topic"),
    ("a dead letter equal to the source", {"dead_letter": KafkaDeadLetter("orders")}, "as dead letter topic"),
    (
        "a dead letter equal to the destination",
        {"dead_letter": KafkaDeadLetter("orders.enriched")},
        "as destination and as dead letter topic",
    ),
    ("no record in a chunk", {"chunk_records": 0}, "chunk_records=0"),
    ("fewer records than none", {"chunk_records": -1}, "chunk_records=-1"),
    ("a bool of records", {"chunk_records": True}, "chunk_records=True"),
    ("a fraction of records", {"chunk_records": 1.5}, "chunk_records=1.5"),
    ("records in words", {"chunk_records": "1000"}, "chunk_records="),
    ("no second in a chunk", {"chunk_seconds": 0}, "chunk_seconds=0"),
    ("fewer seconds than none", {"chunk_seconds": -1.0}, "chunk_seconds=-1.0"),
    ("longer than a transaction", {"chunk_seconds": 600.5}, "the broker aborts transactions"),
    ("seconds without end", {"chunk_seconds": float("inf")}, "chunk_seconds=inf"),
    ("seconds that are no number", {"chunk_seconds": float("nan")}, "chunk_seconds=nan"),
    ("seconds in words", {"chunk_seconds": "3"}, "chunk_seconds="),
    ("a transaction shorter than a chunk", {"chunk_seconds": 10, "transaction_seconds": 13}, "between 14,"),
    ("a transaction that no broker takes", {"transaction_seconds": 841}, "transaction_seconds=841"),
    ("a transaction in words", {"transaction_seconds": "60"}, "transaction_seconds='60'"),
    ("no time for a segment", {"segment_timeout": 0}, "segment_timeout=0: choose between 0 and 600 seconds"),
    ("more time than a chunk has", {"segment_timeout": 601}, "segment_timeout=601"),
    ("time in words", {"segment_timeout": "5s"}, "segment_timeout='5s'"),
    ("a worker without memory", {"worker_memory_mb": 0}, "worker_memory_mb=0: use a whole number of megabytes"),
    ("a worker with too little", {"worker_memory_mb": 511}, "worker_memory_mb=511"),
    ("memory in words", {"worker_memory_mb": "2G"}, "worker_memory_mb='2G'"),
    (
        "exactly once across two clusters",
        {"destination": KafkaDestination("out", conn_id="kafka_b")},
        "a transaction covers one cluster only",
    ),
    ("events that it reads", {"partitions": PartitionScaling(events_topic="orders")}, "has it as events topic"),
    (
        "events among the outputs",
        {"destination": KafkaDestination("out"), "partitions": PartitionScaling(events_topic="out")},
        "has 'out' as destination and as events topic",
    ),
    ("events nowhere", {"partitions": PartitionScaling(events_topic="no topic!")}, "events topic 'no topic!'"),
]


@pytest.mark.parametrize(("changes", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_pipeline_that_cannot_work_is_refused_when_it_is_declared(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        pipeline(**changes)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "topic", ["", "a b", "a/b", "ü", "a" * 250, ".", "..", "orders\n", None, 5, b"orders"], ids=repr
)
@pytest.mark.parametrize(
    ("declare", "role"),
    [(KafkaSource, "source"), (KafkaDestination, "destination"), (KafkaDeadLetter, "dead letter")],
    ids=["source", "destination", "dead letter"],
)
def test_a_name_that_no_topic_can_have_is_refused(declare: Callable[..., Any], role: str, topic: Any) -> None:
    with pytest.raises(PipelineError, match=f"^{role} topic"):
        declare(topic=topic)


@pytest.mark.parametrize("topic", ["a", "a" * 249, "Orders_2.eu-west", "..."])
def test_a_name_that_a_topic_can_have_is_taken(topic: str) -> None:
    assert KafkaSource(topic).topic == KafkaDestination(topic).topic == KafkaDeadLetter(topic).topic == topic


# As a DAG declares them that nobody has checked.
SOURCE: Any = KafkaSource
DESTINATION: Any = KafkaDestination


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: SOURCE("a", isolation_level="committed"), "KafkaSource.isolation_level='committed'"),
        (lambda: SOURCE("a", on_data_loss="ignore"), "use one of 'stop_partition', 'skip'"),
        (lambda: DESTINATION("a", partitioner="murmur3"), "KafkaDestination.partitioner='murmur3'"),
        (lambda: DESTINATION("a", compression="brotli"), "KafkaDestination.compression='brotli'"),
    ],
    ids=["isolation level", "data loss", "partitioner", "compression"],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(declare: Callable[[], Any], said: str) -> None:
    with pytest.raises(PipelineError) as refusal:
        declare()
    assert said in str(refusal.value)


DOCUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 0}, "KafkaPipeline.schema_version is 0"),
    ({"source": "orders"}, "KafkaPipeline.source: a JSON object is needed"),
    ({"segments": "a:b"}, "KafkaPipeline.segments: a list is needed"),
    ({"segments": ["parse"]}, "KafkaPipeline: segment 'parse'"),
    ({"dead_letter": {"dialect": "kpipe"}}, "KafkaPipeline.dead_letter lacks topic"),
    ({"dead_letter": encode(KafkaDeadLetter("orders"))}, "KafkaPipeline: pipeline 'orders' reads 'orders'"),
    ({"delivery": "once"}, "KafkaPipeline.delivery is str 'once'"),
    ({"chunk_records": True}, "KafkaPipeline.chunk_records: int is needed, not bool True"),
    ({"chunk_seconds": 601}, "KafkaPipeline: chunk_seconds=601"),
]


@pytest.mark.parametrize(("changes", "said"), DOCUMENTS, ids=[said for _, said in DOCUMENTS])
def test_a_document_is_held_to_the_same_rules(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        KafkaPipeline.from_json({**pipeline().to_json(), **changes})
    assert said in str(refusal.value)
