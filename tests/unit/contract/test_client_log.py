"""What clients say is told once for each cause, and a lost connection is remembered."""

from __future__ import annotations

import logging
import time

import pytest

from airflow_provider_kpipe.contract import client_log
from airflow_provider_kpipe.contract.client_log import AGAIN_SECONDS, Causes, ClientLog

LOST = "[thrd:main]: {}: Disconnected: connection closed by peer (after 9ms in state UP) (_TRANSPORT)"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(client_log, "CAUSES", Causes())
    return clock


def tell(log: ClientLog, text: str, facility: str = "FAIL", level: int = logging.ERROR) -> None:
    log.log(level, "%s [%s] %s", facility, "rdkafka#producer-1", text)


@pytest.mark.usefixtures("now")
def test_a_cause_is_told_once_whichever_client_and_connection_says_it(caplog: pytest.LogCaptureFixture) -> None:
    first, second = ClientLog(), ClientLog()
    refused = "Connect to ipv4#127.0.0.1:9092 failed: Connection refused"
    for tries in range(50):
        tell(first, f"[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: {refused} (after {tries}ms in state CONNECT)")
        tell(second, f"[thrd:TxnCoordinator]: TxnCoordinator: 127.0.0.1:9092: {refused} (after 0ms in state CONNECT)")
    tell(first, "[thrd:main]: Failed to acquire a PID", facility="GETPID")
    assert [record.getMessage().count("refused") for record in caplog.records] == [1, 0]


def test_a_cause_that_lasts_is_told_again_with_how_often_it_came(
    now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    log = ClientLog()
    for _ in range(3):
        tell(log, LOST.format("broker/1"))
    now[0] += AGAIN_SECONDS
    tell(log, LOST.format("broker/1"))
    assert len(caplog.records) == 2
    assert caplog.records[1].getMessage().endswith("(and 2 times more since it was last logged)")


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(
    ("facility", "text", "is_lost"),
    [
        ("FAIL", LOST.format("broker/1"), True),
        ("FAIL", LOST.format("broker/1") + ": identical to last error: error log suppressed", True),
        ("FAIL", "TxnCoordinator: Closing connection due to nodename change (after 9ms in state UP)", True),
        ("FAIL", "broker/1: 1 request(s) timed out: disconnect (after 9ms in state UP)", True),
        ("FAIL", "broker/1: something that says nothing of a state", True),
        ("FAIL", "broker/1: Connect to x failed: Connection refused (after 0ms in state CONNECT)", False),
        ("FAIL", "broker/1: Disconnected (after 3ms in state APIVERSION_QUERY)", False),
        ("STATE", "broker/1: Broker changed state UP -> DOWN", False),
    ],
)
def test_a_connection_that_was_in_use_is_lost(
    facility: str, text: str, is_lost: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = ClientLog()
    tell(log, text, facility, logging.DEBUG)
    assert log.lost_connection is is_lost
    assert caplog.records == []
