from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.exceptions import ForbiddenError, KpipeError
from airflow_provider_kpipe.kafka.ailments import Ailments
from airflow_provider_kpipe.kafka.broker_errors import failure_of, needing, passes, remedy


@pytest.mark.parametrize(
    ("name", "passing", "said"),
    [
        ("INVALID_TRANSACTION_TIMEOUT", False, "raise the brokers' transaction.max.timeout.ms to 60000"),
        ("_TRANSPORT", True, "see that the cluster is up and that bootstrap.servers and security.protocol"),
        ("COORDINATOR_NOT_AVAILABLE", True, "see that the cluster is up"),
        ("FENCED_LEADER_EPOCH", True, "see that the cluster is up"),
        ("UNKNOWN_LEADER_EPOCH", True, "see that the cluster is up"),
        ("OFFSET_NOT_AVAILABLE", True, "see that the cluster is up"),
        ("KAFKA_STORAGE_ERROR", True, "see that the cluster is up"),
        ("_NOENT", True, "see that the cluster is up"),
        ("GROUP_AUTHORIZATION_FAILED", False, "see the page 'Permissions' of kpipe's documentation"),
        ("TOPIC_AUTHORIZATION_FAILED", False, "see the page 'Permissions' of kpipe's documentation"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "see the page 'Permissions' of kpipe's documentation"),
        ("UNKNOWN_TOPIC_OR_PART", False, "see that the topic is there"),
        ("_AUTO_OFFSET_RESET", False, "start a new run"),
        ("INVALID_GROUP_ID", False, "the broker's log says why"),
    ],
)
def test_an_error_of_the_broker_has_its_remedy(name: str, passing: bool, said: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    assert passes(error) is passing
    assert said in remedy(error)


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            ForbiddenError,
            "rejected the request about groups .*the page 'Permissions'",
        ),
        (KafkaError._BAD_COMPRESSION, KpipeError, r"rejected the request about groups .*receive\.message\.max\.bytes"),
    ],
)
def test_an_error_that_no_wait_ends_is_no_outage(code: int, kind: type[KpipeError], said: str) -> None:
    failure = failure_of(KafkaError(code), Ailments(), "about groups", "kafka:9092")
    assert type(failure) is kind
    assert not failure.retriable
    with pytest.raises(kind, match=said):
        raise failure


def test_a_call_without_permission_names_the_resource() -> None:
    with (
        pytest.raises(ForbiddenError, match="may not use the group 'bills'"),
        needing(topic="orders", group="bills"),
    ):
        raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))


@pytest.mark.parametrize("code", [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._TRANSPORT])
def test_an_error_of_another_resource_or_another_kind_stays_as_it_is(code: int) -> None:
    with pytest.raises(KafkaException), needing(topic="orders"):
        raise KafkaException(KafkaError(code))
