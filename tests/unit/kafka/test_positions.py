from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_provider_kpipe.exceptions import ConnectionSettingsError, ForbiddenError, KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka import cluster as module
from airflow_provider_kpipe.kafka.positions import Positions

# Nobody listens there, and nothing here waits for an answer.
SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
PASSING = ["_TRANSPORT", "FENCED_LEADER_EPOCH", "NOT_COORDINATOR", "UNSTABLE_OFFSET_COMMIT"]
CODES = [
    *((name, KafkaUnavailableError) for name in PASSING),
    ("UNKNOWN_TOPIC_OR_PART", KpipeError),
    ("GROUP_AUTHORIZATION_FAILED", ForbiddenError),
]


class FakeConsumer:
    """A broker cannot be made to answer with each of its errors: fails as a whole, or for partition 3."""

    error: KafkaError
    fails: bool
    told: KafkaError | None = None

    def __init__(self, settings: Any) -> None:
        pass

    def committed(self, asked: Any, timeout: float) -> list[SimpleNamespace]:
        if self.fails:
            raise KafkaException(self.error)
        return [SimpleNamespace(partition=3, offset=-1001, metadata=None, error=self.error)]

    def poll(self, timeout: float) -> SimpleNamespace | None:
        return SimpleNamespace(error=lambda: self.told) if self.told else None

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("name", "raised"), CODES, ids=[name for name, _ in CODES])
@pytest.mark.parametrize("fails", [True, False], ids=["as a whole", "for a partition"])
def test_only_an_error_that_passes_is_worth_another_try(
    monkeypatch: pytest.MonkeyPatch, fails: bool, name: str, raised: type[KpipeError]
) -> None:
    error = KafkaError(getattr(KafkaError, name))
    monkeypatch.setattr(module, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "fails", fails, raising=False)
    monkeypatch.setattr(FakeConsumer, "error", error, raising=False)
    with Positions(SETTINGS, answer_seconds=0) as positions, pytest.raises(KpipeError) as failure:
        positions.group_offsets("orders", "orders.in", [3])
    assert type(failure.value) is raised
    says = "is unreachable, asked" if raised.retriable else "rejected the request"
    assert f"the Kafka cluster at 127.0.0.1:1 {says} about group 'orders'" in str(failure.value)
    assert error.str() in str(failure.value)


def test_a_transient_error_is_asked_again_with_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client sticks to the leader that it knows."""
    made: list[FakeConsumer] = []

    class Moving(FakeConsumer):
        def __init__(self, settings: Any) -> None:
            made.append(self)

        def committed(self, asked: Any, timeout: float) -> list[SimpleNamespace]:
            if len(made) < 3:
                raise KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))
            return [SimpleNamespace(partition=3, offset=7, metadata="", leader_epoch=None, error=None)]

    monkeypatch.setattr(module, "Consumer", Moving)
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0)
    with Positions(SETTINGS) as positions:
        assert positions.group_offsets("orders", "orders.in", [3])[3].offset == 7
    assert len(made) == 3


def test_a_client_that_may_not_find_the_group_says_so_instead_of_that_it_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "Consumer", FakeConsumer)
    monkeypatch.setattr(FakeConsumer, "fails", True, raising=False)
    monkeypatch.setattr(FakeConsumer, "error", KafkaError(KafkaError._TIMED_OUT), raising=False)
    monkeypatch.setattr(FakeConsumer, "told", KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    with Positions(SETTINGS, answer_seconds=0) as positions, pytest.raises(KpipeError) as failure:
        positions.group_offsets("orders", "orders.in", [3])
    assert "rejected the request about group 'orders' (" in str(failure.value)
    assert "): see the page 'Permissions' of kpipe's documentation for all that the connection's user has to" in (
        str(failure.value)
    )


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("security.protocol", "FOO", 'Invalid value "FOO" for configuration property "security.protocol"'),
        ("linger.ms", "abc", 'Invalid value for configuration property "queue.buffering.max.ms"'),
        ("ssl.ca.location", "/no/such/file", "ssl.ca.location failed"),
    ],
)
def test_settings_that_no_client_takes_are_an_error_of_the_connection(setting: str, value: str, said: str) -> None:
    with pytest.raises(ConnectionSettingsError, match="rejects the settings of the Kafka connection") as refused:
        Positions({**SETTINGS, "security.protocol": "ssl", setting: value})
    assert said in str(refused.value)
    assert str(refused.value).endswith(": fix its extra")


def test_settings_that_only_a_consumer_does_not_take_are_too() -> None:
    settings = {**SETTINGS, "fetch.max.bytes": "1000000", "message.max.bytes": "2000000"}
    with Positions(settings) as positions, pytest.raises(ConnectionSettingsError, match=r"fetch\.max\.bytes"):
        positions.group_offsets("orders", "orders.in", [0])
