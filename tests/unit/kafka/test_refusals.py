from __future__ import annotations

import re

import pytest
from confluent_kafka import KafkaError

from airflow_provider_kpipe.exceptions import (
    ConnectionSettingsError,
    KafkaUnavailableError,
    KpipeError,
    UnreachableError,
)
from airflow_provider_kpipe.kafka.ailments import Ailments
from airflow_provider_kpipe.kafka.refusals import failure_of, passes, remedy


@pytest.mark.parametrize(
    ("name", "passing", "said"),
    [
        ("_TRANSPORT", True, "see that the cluster is up and that bootstrap.servers and security.protocol"),
        ("COORDINATOR_NOT_AVAILABLE", True, "see that the cluster is up"),
        ("FENCED_LEADER_EPOCH", True, "see that the cluster is up"),
        ("UNKNOWN_LEADER_EPOCH", True, "see that the cluster is up"),
        ("OFFSET_NOT_AVAILABLE", True, "see that the cluster is up"),
        ("KAFKA_STORAGE_ERROR", True, "see that the cluster is up"),
        ("_NOENT", True, "see that the cluster is up"),
        ("GROUP_AUTHORIZATION_FAILED", False, "allowed in docs/operations/permissions.md"),
        ("TOPIC_AUTHORIZATION_FAILED", False, "allowed in docs/operations/permissions.md"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False, "allowed in docs/operations/permissions.md"),
        ("UNKNOWN_TOPIC_OR_PART", False, "see that the topic is there"),
        ("_AUTO_OFFSET_RESET", False, "start a new run"),
        ("INVALID_GROUP_ID", False, "the broker's log says why"),
    ],
)
def test_whoever_reads_an_error_knows_what_to_do(name: str, passing: bool, said: str) -> None:
    error = KafkaError(getattr(KafkaError, name))
    assert passes(error) is passing
    assert said in remedy(error)


REFUSED = ("_TRANSPORT", "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms)")
CUT_OFF = ("_TRANSPORT", "127.0.0.1:1/bootstrap: Disconnected (after 3ms in state UP)")
UNKNOWN_HOST = ("_RESOLVE", "kafka:9092/bootstrap: Failed to resolve 'kafka:9092': Name or service not known")
WRONG_PASSWORD = ("_AUTHENTICATION", "SASL authentication error: Invalid username or password (after 301ms)")
WRONG_AUTHORITY = ("_SSL", "SSL handshake failed: certificate verify failed")
ALL_DOWN = ("_ALL_BROKERS_DOWN", "1/1 brokers are down")


def ailing(*said: tuple[str, str]) -> Ailments:
    ailments = Ailments()
    for name, text in said:
        ailments.note(KafkaError(getattr(KafkaError, name), text))
    return ailments


@pytest.mark.parametrize(
    ("said", "kind", "named"),
    [
        ((WRONG_PASSWORD, ALL_DOWN), ConnectionSettingsError, r"Invalid username or password\): .*mend its login"),
        ((WRONG_AUTHORITY, ALL_DOWN), ConnectionSettingsError, r"certificate verify failed\): .*ssl\.ca\.location"),
        ((UNKNOWN_HOST, ALL_DOWN), UnreachableError, r"not known\): no such host is known: mend bootstrap\.servers"),
        ((REFUSED, ALL_DOWN), UnreachableError, r"Connection refused\): nobody listens there: .* host and port"),
        ((REFUSED, UNKNOWN_HOST, ALL_DOWN), UnreachableError, r"refused; .*not known\): no such host"),
        # One of several brokers only, as far as is known.
        ((WRONG_PASSWORD,), KafkaUnavailableError, r"Invalid username or password\): .*mend its login"),
        ((REFUSED,), KafkaUnavailableError, r"nobody listens there"),
        ((CUT_OFF, ALL_DOWN), KafkaUnavailableError, r"Disconnected\): see that the cluster is up and that"),
        ((ALL_DOWN,), KafkaUnavailableError, r"Timed out\): see that the cluster is up"),
        ((), KafkaUnavailableError, r"Timed out\): see that the cluster is up"),
    ],
)
def test_a_call_that_timed_out_is_named_after_what_its_client_said(
    said: tuple[tuple[str, str], ...], kind: type[KpipeError], named: str
) -> None:
    failure = failure_of(KafkaError(KafkaError._TIMED_OUT), ailing(*said), "about topic 'orders'", "kafka:9092")
    assert type(failure) is kind
    assert "the Kafka cluster at kafka:9092 does not answer about topic 'orders' (" in str(failure)
    assert re.search(named, str(failure)), str(failure)


def test_what_was_said_before_the_last_answer_is_no_cause() -> None:
    ailments = ailing(WRONG_PASSWORD, ALL_DOWN)
    ailments.forget()
    assert (ailments.are_final, ailments.mean_nobody_is_there, ailments.remedy, str(ailments)) == (
        False,
        False,
        None,
        "",
    )
