from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from airflow_provider_kpipe.kafka.refusals import passes, remedy


@pytest.mark.parametrize(
    ("name", "passing", "said"),
    [
        ("_TRANSPORT", True, "see that the cluster is up and that bootstrap.servers and security.protocol"),
        ("COORDINATOR_NOT_AVAILABLE", True, "see that the cluster is up"),
        ("GROUP_AUTHORIZATION_FAILED", False, "allow the connection's user to read the group"),
        ("TOPIC_AUTHORIZATION_FAILED", False, "allow the connection's user to describe the topic"),
        ("UNKNOWN_TOPIC_OR_PART", False, "see that the topic is there"),
        ("_AUTO_OFFSET_RESET", False, "start a new run"),
        ("INVALID_GROUP_ID", False, "the broker's log says why"),
    ],
)
def test_whoever_reads_an_error_knows_what_to_do(name: str, passing: bool, said: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    assert passes(error) is passing
    assert said in remedy(error)
