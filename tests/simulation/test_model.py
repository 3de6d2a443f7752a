"""What the model does of itself, as far as no broker can be made to do it in a test."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.simulation.fates import Fates
from tests.simulation.kafka.cluster import Cluster
from tests.simulation.kafka.consumer import Consumer
from tests.simulation.kafka.groups import Held
from tests.simulation.kafka.log import Row
from tests.simulation.kafka.partitioning import murmur2
from tests.simulation.kafka.producer import Producer
from tests.simulation.processes import Process
from tests.simulation.scheduler import Simulation

PLACE = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(Simulation(1))
    made.create("t", 1)
    return made


def written(cluster: Cluster, *values: bytes, transaction: int | None = None) -> None:
    cluster.append("t", 0, [Row(value, value) for value in values], transaction)


def reader(cluster: Cluster, first: int, leader_epoch: int = -1) -> Consumer:
    made = Consumer({"group.id": "g", "auto.offset.reset": "error", "enable.partition.eof": True})
    made.assign([TopicPartition("t", 0, first, leader_epoch=leader_epoch)])
    return made


def taken(consumer: Consumer) -> list[bytes | int]:
    """Values, and codes of errors."""
    found: list[bytes | int] = []
    while batch := consumer.consume(10, 0.1):
        for message in batch:
            error = message.error()
            found.append((message.value() or b"") if error is None else error.code())
    return found


def writer(cluster: Cluster, **settings: object) -> Producer:
    made = Producer({"transactional.id": "w", **settings})
    made.init_transactions(1)
    return made


def test_a_reader_of_what_an_unclean_leader_has_lost_is_told(cluster: Cluster) -> None:
    written(cluster, b"a", b"b", b"c")
    cluster.elect("t", 0, lost=2)
    written(cluster, b"x", b"y", b"z")
    assert taken(reader(cluster, 3, leader_epoch=0)) == [KafkaError._AUTO_OFFSET_RESET]
    assert taken(reader(cluster, 1, leader_epoch=0)) == [b"x", b"y", b"z", KafkaError._PARTITION_EOF]
    assert taken(reader(cluster, 3)) == [b"z", KafkaError._PARTITION_EOF]


def test_a_reader_is_told_of_an_election_in_the_midst_of_its_reading(cluster: Cluster) -> None:
    written(cluster, b"a", b"b")
    consumer = reader(cluster, 0)
    assert taken(consumer) == [b"a", b"b", KafkaError._PARTITION_EOF]
    cluster.elect("t", 0)
    written(cluster, b"c")
    assert taken(consumer) == [b"c", KafkaError._PARTITION_EOF]
    cluster.elect("t", 0, lost=2)
    written(cluster, b"x", b"y")
    assert taken(consumer) == [KafkaError._AUTO_OFFSET_RESET]


def test_compaction_leaves_holes(cluster: Cluster) -> None:
    written(cluster, b"a", b"b", b"a")
    cluster.compact("t", 0)
    assert [offset for offset, _ in cluster.read("t", 0)] == [1, 2]
    assert taken(reader(cluster, 0)) == [b"b", b"a", KafkaError._PARTITION_EOF]


def test_a_start_that_has_left_the_log_is_told(cluster: Cluster) -> None:
    written(cluster, b"a", b"b")
    cluster.delete_records("t", 0, 1)
    assert taken(reader(cluster, 0)) == [KafkaError._AUTO_OFFSET_RESET]
    assert [row.key for _, row in cluster.read("t", 0, whole=True)] == [b"a", b"b"]


def test_a_log_whose_start_has_moved_beyond_an_election_was_not_truncated(cluster: Cluster) -> None:
    """Of the leader before, it knows no more than where it starts itself."""
    written(cluster, b"a")
    cluster.elect("t", 0)
    written(cluster, b"b", b"c")
    assert taken(reader(cluster, 2, leader_epoch=0)) == [KafkaError._AUTO_OFFSET_RESET]
    cluster.delete_records("t", 0, 2)
    assert taken(reader(cluster, 2, leader_epoch=0)) == [b"c", KafkaError._PARTITION_EOF]


def test_an_open_transaction_holds_readers_back_until_it_times_out(cluster: Cluster) -> None:
    producer = writer(cluster, **{"transaction.timeout.ms": 60_000})
    producer.begin_transaction()
    producer.produce("t", b"open", partition=0)
    producer.flush()
    written(cluster, b"behind")
    assert taken(reader(cluster, 0)) == [KafkaError._PARTITION_EOF]
    cluster.simulation.sleep(61.0)
    cluster.settle()
    assert taken(reader(cluster, 0)) == [b"behind", KafkaError._PARTITION_EOF]
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction()
    assert raised.value.args[0].fatal()


def test_a_transaction_that_was_only_announced_keeps_nobody_waiting(cluster: Cluster) -> None:
    simulation, process = cluster.simulation, Process("writer")

    def write() -> None:
        producer = writer(cluster)
        producer.begin_transaction()
        # It stands still before each request: also that to the coordinator of the group, behind that of transactions.
        simulation.fates = Fates(freeze=1.0)
        producer.send_offsets_to_transaction([TopicPartition("t", 0, 7)], b"g")

    def kill() -> None:
        simulation.wait(lambda: bool(cluster.transactions.get("w").parts))
        simulation.kill(process)

    simulation.spawn(process, "writer", write)
    simulation.spawn(Process("killer"), "killer", kill)
    simulation.run()
    left = cluster.transactions.get("w")
    assert (left.state, left.holds_readers) == ("ongoing", False)


def test_offsets_of_a_topic_that_is_deleted_are_forgotten(cluster: Cluster) -> None:
    cluster.reset("g", "t", {0: 5})
    old = cluster.topic("t").id
    assert cluster.recreate("t").id != old
    assert cluster.group("g").offsets == {}


def test_live_members_keep_others_from_committing(cluster: Cluster) -> None:
    cluster.join("g", "somebody")
    consumer = reader(cluster, 0)
    with pytest.raises(KafkaException) as raised:
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    cluster.part("g")
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    assert cluster.group("g").offsets == {("t", 0): Held(1)}


def test_a_late_end_finds_the_next_transaction_of_its_producer(cluster: Cluster) -> None:
    """The hole of the older protocol, which the engine has to step around."""
    simulation = cluster.simulation

    def write() -> None:
        producer = writer(cluster)
        simulation.fates = Fates(lost=1.0, late=1.0)
        while True:
            producer.begin_transaction()
            producer.produce("t", b"mine", partition=0)
            producer.flush()
            simulation.sleep(1.0)
            if ("late", "end") in [each[2:4] for each in simulation.trace]:
                return
            producer.commit_transaction()

    task = simulation.spawn(Process("writer"), "writer", write)
    simulation.run()
    assert task.succeeded
    ends = [each for each in simulation.trace if each[2:4] == ("late", "end")]
    assert ends[0][7] == ends[0][5]


def test_a_dead_client_leaves_its_transaction_open(cluster: Cluster) -> None:
    simulation, process = cluster.simulation, Process("writer")

    def write() -> None:
        producer = writer(cluster)
        try:
            producer.begin_transaction()
            producer.produce("t", b"mine", partition=0)
            producer.flush()
            simulation.sleep(1e6)
        finally:
            producer.abort_transaction()

    writing = simulation.spawn(process, "writer", write)

    def kill() -> None:
        simulation.wait(lambda: bool(cluster.log("t", 0).open))
        simulation.kill(process)

    simulation.spawn(Process("killer"), "killer", kill)
    simulation.run()
    assert writing.done
    assert not writing.succeeded
    left = cluster.transactions.get("w")
    assert (left.state, left.holds_readers) == ("ongoing", True)


def test_a_process_that_is_frozen_stands_still_with_all_its_threads(cluster: Cluster) -> None:
    simulation, frozen = cluster.simulation, Process("frozen")
    ticks: list[tuple[str, int]] = []

    def tick(name: str) -> None:
        for _ in range(4):
            simulation.sleep(10.0)
            ticks.append((name, round(simulation.now - began) // 10))

    def freeze_later() -> None:
        simulation.sleep(15.0)
        simulation.freeze(frozen, 50.0)

    began = simulation.now
    simulation.spawn(frozen, "one", lambda: tick("one"))
    simulation.spawn(frozen, "two", lambda: tick("two"))
    simulation.spawn(Process("other"), "other", lambda: tick("other"))
    simulation.spawn(Process("hand"), "hand", freeze_later)
    simulation.run()
    for name in ("one", "two"):
        assert [at for each, at in ticks if each == name] == [1, 6, 7, 8]
    assert [at for each, at in ticks if each == "other"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("key", "hashed"), [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536)]
)
def test_keys_are_hashed_as_by_the_java_client(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0x7FFFFFFF
