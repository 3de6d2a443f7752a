from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.contract.faults.fault import Fault
from kpipe_engine.errors import (
    ChunkFailedError,
    NoAnswerError,
    PartitionHaltedError,
    is_record_error,
    is_silence,
    may_be_fenced,
    needing,
)

OF_THE_RECORD = [
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
]
OF_THE_CLUSTER = [
    KafkaError._TRANSPORT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._QUEUE_FULL,
    KafkaError._STATE,
    KafkaError._PURGE_QUEUE,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
]
OF_A_SUCCESSOR = [
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError._FATAL,
]


@pytest.mark.parametrize("code", OF_THE_RECORD)
def test_another_record_may_pass_where_one_cannot_be_written(code: int) -> None:
    assert is_record_error(KafkaError(code))


@pytest.mark.parametrize("code", [*OF_THE_CLUSTER, *OF_A_SUCCESSOR])
def test_no_record_is_blamed_for_what_the_cluster_does(code: int) -> None:
    assert not is_record_error(KafkaError(code))


@pytest.mark.parametrize("code", OF_THE_RECORD)
def test_no_record_is_blamed_when_the_producer_is_broken(code: int) -> None:
    assert not is_record_error(KafkaError(code, "fatal", fatal=True))


@pytest.mark.parametrize("code", OF_A_SUCCESSOR)
def test_a_successor_fences(code: int) -> None:
    assert may_be_fenced(KafkaError(code))


@pytest.mark.parametrize("code", [*OF_THE_RECORD, *OF_THE_CLUSTER])
def test_nothing_else_fences(code: int) -> None:
    assert not may_be_fenced(KafkaError(code))


def test_a_failed_chunk_knows_which_records_made_it_fail() -> None:
    faults = {5: Fault.of(ValueError("x"), "kafka", "destination")}
    failure = ChunkFailedError("refused", faults)
    faults.clear()
    assert str(failure) == "refused"
    assert list(failure.faults) == [5]
    assert ChunkFailedError("refused").faults == {}


def test_a_stopped_partition_knows_where() -> None:
    assert PartitionHaltedError("why", 5).next_offset == 5
    assert PartitionHaltedError("why").next_offset is None
    assert str(PartitionHaltedError("why", 5)) == "why"


@pytest.mark.parametrize(
    ("code", "thing"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "topic 't'"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "group 'g'"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional id 'i'"),
    ],
)
def test_the_error_names_the_forbidden_resource(code: int, thing: str) -> None:
    with (
        pytest.raises(PartitionHaltedError, match=rf"user may not use the {thing} \(why\): see the page"),
        needing(topic="t", group="g", transactional_id="i"),
    ):
        raise KafkaException(KafkaError(code, "why"))


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError.OFFSET_METADATA_TOO_LARGE, "offset.metadata.max.bytes"),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, "lower transaction_seconds"),
    ],
)
def test_exceeding_a_limit_of_the_broker_stops_the_partition_with_its_remedy(code: int, remedy: str) -> None:
    with pytest.raises(PartitionHaltedError, match=rf"\(why\): .*{remedy}"), needing(group="g"):
        raise KafkaException(KafkaError(code, "why"))


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError.GROUP_AUTHORIZATION_FAILED])
def test_an_unknown_error_is_left_as_it_is(code: int) -> None:
    failure = KafkaException(KafkaError(code))
    with pytest.raises(KafkaException) as raised, needing(topic="t"):
        raise failure
    assert raised.value is failure


@pytest.mark.parametrize(
    ("failure", "silent"),
    [
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), True),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), True),
        (KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)), False),
        (NoAnswerError("the broker did not answer"), True),
        (ChunkFailedError("the broker rejected 3 records"), False),
        (PartitionHaltedError("a segment raised"), False),
    ],
    ids=repr,
)
def test_nobody_has_answered_also_where_that_is_the_cause(failure: Exception, silent: bool) -> None:
    assert is_silence(failure) is silent
    stop = PartitionHaltedError("five times")
    stop.__cause__ = failure
    assert is_silence(stop) is silent
