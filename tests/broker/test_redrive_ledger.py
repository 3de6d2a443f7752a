"""The ledger topic: made, widened, and refused where it would forget."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.exceptions import KafkaUnavailableError, KpipeError
from airflow_provider_kpipe.kafka import bounded_reader
from airflow_provider_kpipe.kafka.bounded_reader import read_range
from airflow_provider_kpipe.kafka.positions import Positions
from airflow_provider_kpipe.redriving.ledger_topic import ensure_ledger
from airflow_provider_kpipe.sandbox import SandboxBroker, create_topics
from airflow_provider_kpipe.sandbox.ports import free_ports
from tests.kit.topics import Sent, fill

MakeTopic = Callable[..., str]


def ensure(broker: SandboxBroker, dead_letters: str) -> int:
    """How many partitions the ledger has afterwards."""
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with Positions(settings) as positions:
        ensure_ledger(settings, positions.topic(dead_letters), f"{dead_letters}.redriven")
        return len(positions.topic(f"{dead_letters}.redriven").partitions)


def test_it_is_made_once_compacted_and_as_wide_as_its_neighbour(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    dead_letters = make_topic("dead", partitions=3)
    assert ensure(broker, dead_letters) == 3
    assert ensure(broker, dead_letters) == 3
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    resource = ConfigResource(ConfigResource.Type.TOPIC, f"{dead_letters}.redriven")
    assert admin.describe_configs([resource])[resource].result()["cleanup.policy"].value == "compact"


def test_it_grows_with_its_neighbour(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    dead_letters = make_topic("dead", partitions=3)
    create_topics(broker.bootstrap_servers, f"{dead_letters}.redriven", config={"cleanup.policy": "compact"})
    assert ensure(broker, dead_letters) == 3


def test_one_that_forgets_is_refused(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    dead_letters = make_topic("dead")
    create_topics(broker.bootstrap_servers, f"{dead_letters}.redriven")
    with pytest.raises(KpipeError, match=r"has cleanup.policy=delete: it would forget .* set cleanup.policy=compact"):
        ensure(broker, dead_letters)


def test_one_that_cannot_be_made_says_what_to_do(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    dead_letters = make_topic("dead")
    # A broker refuses names that differ only in a dot and an underscore.
    create_topics(broker.bootstrap_servers, f"{dead_letters}_redriven")
    with pytest.raises(KpipeError) as refusal:
        ensure(broker, dead_letters)
    assert "create it with 1 partitions and cleanup.policy=compact" in str(refusal.value)


def test_a_range_is_read_to_its_end_and_not_beyond(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    topic = make_topic("read")
    fill(broker.bootstrap_servers, topic, [Sent(str(each).encode()) for each in range(10)])
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    found = [each.value() for each in read_range(settings, topic, PartitionRange(0, 3, 6, None))]
    assert found == [b"3", b"4", b"5"]
    assert list(read_range(settings, topic, PartitionRange(0, 6, 6, None))) == []


def test_a_range_that_has_left_the_topic_is_an_error_that_names_it(
    broker: SandboxBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic("read")
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    with pytest.raises(KpipeError, match=f"for the records of partition 0 of '{topic}' from 5"):
        list(read_range(settings, topic, PartitionRange(0, 5, 9, None)))


def test_a_cluster_that_does_not_answer_may_be_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_reader, "STALL_SECONDS", 0.5)
    (port,) = free_ports(1)
    with pytest.raises(KafkaUnavailableError, match=r"'orders' from 5 .*: see that the cluster is up"):
        list(read_range({"bootstrap.servers": f"127.0.0.1:{port}"}, "orders", PartitionRange(0, 5, 9, None)))
