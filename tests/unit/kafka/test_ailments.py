from __future__ import annotations

import logging
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
from airflow_provider_kpipe.kafka.broker_errors import failure_of

NO_LOGIN = ("_AUTHENTICATION", "SASL PLAIN mechanism handshake failed: Broker: Request not valid in current SASL state")
HUNG_UP_IN_LOGIN = [
    ("_AUTHENTICATION", "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's supported"),
    ("_AUTHENTICATION", "SASL SCRAM-SHA-256 mechanism handshake failed: Local: Timed out: broker's supported"),
    ("_TRANSPORT", "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure"),
]
NO_CERTIFICATE = ("_TRANSPORT", "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate")
NO_TLS = [
    ("_TRANSPORT", "SSL handshake failed: Disconnected: reset: PLAINTEXT listener? (after 2ms in state SSL_HANDSHAKE)"),
    ("_TRANSPORT", "Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)"),
    ("_TRANSPORT", "error:0A00010B:SSL routines::wrong version number (after 0ms in state SSL_HANDSHAKE)"),
    ("_SSL", "SSL handshake failed: error:0A00010B:SSL routines::wrong version number (after 31ms)"),
]
RESET = ("_TRANSPORT", "Connect to ipv4#127.0.0.1:1 failed: Connection reset by peer (after 0ms in state CONNECT)")
TIMED_OUT = ("_TRANSPORT", "Connection setup timed out in state CONNECT (after 30009ms in state CONNECT)")
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
        ((WRONG_PASSWORD, ALL_DOWN), ConnectionSettingsError, r"Invalid username or password\): .*fix its login"),
        ((WRONG_AUTHORITY, ALL_DOWN), ConnectionSettingsError, r"certificate verify failed\): .*ssl\.ca\.location"),
        ((UNKNOWN_HOST, ALL_DOWN), UnreachableError, r"\): the host name cannot be resolved: fix bootstrap\.servers"),
        ((REFUSED, ALL_DOWN), UnreachableError, r"Connection refused\): connection refused: .* host and port"),
        ((REFUSED, UNKNOWN_HOST, ALL_DOWN), UnreachableError, r"refused; .*not known\): the host name"),
        ((NO_LOGIN, ALL_DOWN), ConnectionSettingsError, r"SASL state\): the listener takes no login"),
        *(((each, ALL_DOWN), KafkaUnavailableError, r"\): the broker was gone before") for each in HUNG_UP_IN_LOGIN),
        ((HUNG_UP_IN_LOGIN[0], REFUSED, ALL_DOWN), KafkaUnavailableError, r"\): the broker was gone before"),
        ((HUNG_UP_IN_LOGIN[0], WRONG_PASSWORD, ALL_DOWN), ConnectionSettingsError, r"password\): .*fix its login"),
        ((NO_CERTIFICATE, ALL_DOWN), ConnectionSettingsError, r"bad certificate\): .*ssl\.certificate\.location"),
        *(((each, ALL_DOWN), UnreachableError, r"\): the listener speaks no TLS") for each in NO_TLS),
        ((*NO_TLS, RESET, ALL_DOWN), UnreachableError, r"wrong version number.*\): the listener speaks no TLS"),
        ((RESET, ALL_DOWN), UnreachableError, r"reset by peer\): connection refused"),
        ((TIMED_OUT, ALL_DOWN), KafkaUnavailableError, r"timed out .*\): see that the cluster is up"),
        ((TIMED_OUT, REFUSED, ALL_DOWN), KafkaUnavailableError, r"refused\): connection refused"),
        # One of several brokers only, as far as is known.
        ((WRONG_PASSWORD,), KafkaUnavailableError, r"Invalid username or password\): .*fix its login"),
        ((REFUSED,), KafkaUnavailableError, r"connection refused"),
        ((CUT_OFF, ALL_DOWN), UnreachableError, r"Disconnected\): the listener closes connections without login"),
        ((ALL_DOWN,), KafkaUnavailableError, r"Timed out\): see that the cluster is up"),
        ((), KafkaUnavailableError, r"Timed out\): see that the cluster is up"),
    ],
)
def test_a_call_that_timed_out_is_named_after_what_its_client_said(
    said: tuple[tuple[str, str], ...], kind: type[KpipeError], named: str
) -> None:
    failure = failure_of(KafkaError(KafkaError._TIMED_OUT), ailing(*said), "about topic 'orders'", "kafka:9092")
    assert type(failure) is kind
    assert "the Kafka cluster at kafka:9092 is unreachable, asked about topic 'orders' (" in str(failure)
    assert re.search(named, str(failure)), str(failure)


def test_log_lines_before_the_last_answer_are_no_cause() -> None:
    ailments = ailing(WRONG_PASSWORD, ALL_DOWN)
    ailments.forget()
    assert not ailments.are_final
    assert not ailments.mean_nobody_answers
    assert (ailments.remedy, str(ailments)) == (None, "")


HANGS_UP = "[thrd:kafka:9092/1]: kafka:9092/1: Disconnected: connection closed by peer (after 1ms in state {})"


@pytest.mark.parametrize(("state", "remedy"), [("APIVERSION_QUERY", "without TLS"), ("UP", "without login")])
def test_a_disconnect_shows_in_the_log_of_the_client_only(state: str, remedy: str) -> None:
    ailments = Ailments()
    ailments.log(logging.INFO, "", "FAIL", "", HANGS_UP.format(state))
    ailments.note(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert ailments.mean_nobody_answers
    assert remedy in (ailments.remedy or "")
    assert str(ailments) == "kafka:9092/1: Disconnected: connection closed by peer"


def test_a_broker_that_has_answered_and_hangs_up_is_no_mistake_in_the_address() -> None:
    ailments = Ailments()
    ailments.answered()
    ailments.log(logging.INFO, "", "FAIL", "", HANGS_UP.format("UP"))
    ailments.note(KafkaError(KafkaError._TRANSPORT, REFUSED[1]))
    ailments.note(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert not ailments.mean_nobody_answers
    assert "connection refused" in (ailments.remedy or "")


def test_other_log_lines_of_clients_are_no_ailment(caplog: pytest.LogCaptureFixture) -> None:
    ailments = Ailments()
    ailments.log(logging.INFO, "", "STATE", "", "kafka:9092/1: Broker changed state UP -> DOWN")
    ailments.log(logging.ERROR, "", "GETPID", "", "Failed to acquire a PID for a test of ailments")
    assert str(ailments) == ""
    assert [each.getMessage() for each in caplog.records] == ["Failed to acquire a PID for a test of ailments"]
