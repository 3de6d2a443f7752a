"""The embedded broker, for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_kpipe.sandbox import storage
from airflow_provider_kpipe.sandbox.broker import SandboxBroker
from airflow_provider_kpipe.sandbox.errors import SandboxError
from airflow_provider_kpipe.sandbox.jars import kafka_jars
from airflow_provider_kpipe.sandbox.ports import free_ports
from airflow_provider_kpipe.sandbox.tools import TOOLS, kafka_consumer_groups
from airflow_provider_kpipe.sandbox.topics import create_topics
from tests.kit.processes import outlasting

MakeTopic = Callable[..., str]


def produce(broker: SandboxBroker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def consume(broker: SandboxBroker, topic: str, count: int, group: str = "readers") -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=60)
        consumer.commit(asynchronous=False)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def end_offset(broker: SandboxBroker, topic: str, timeout: float) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "asker", "log_level": 0})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=timeout)[1]
    finally:
        consumer.close()


def wait_until_gone(pid: int, seconds: float = 60) -> bool:
    """Whether the process ends in time; one that is only waiting to be reaped has ended."""
    try:
        return outlasting([psutil.Process(pid)], seconds) == []
    except psutil.NoSuchProcess:
        return True


def test_it_lists_its_node(broker: SandboxBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    nodes = admin.describe_cluster(request_timeout=60).result().nodes
    assert [f"{node.host}:{node.port}" for node in nodes] == [broker.bootstrap_servers]


def test_a_produced_record_is_consumed(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    topic = make_topic("orders", partitions=3)
    produce(broker, topic, b"a", b"b")
    assert consume(broker, topic, 2) == [b"a", b"b"]


def test_kafkas_own_tool_sees_the_group(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    topic = make_topic("orders")
    produce(broker, topic, b"a", b"b", b"c")
    consume(broker, topic, 2, group=f"group-of-{topic}")
    described = kafka_consumer_groups(broker.bootstrap_servers, "--describe", "--group", f"group-of-{topic}")
    row = next(line.split() for line in described.splitlines() if topic in line.split())
    assert row[:6] == [f"group-of-{topic}", topic, "0", "2", "3", "1"]


def test_a_tool_that_fails_says_why(broker: SandboxBroker) -> None:
    with pytest.raises(SandboxError, match=r"ConsumerGroupCommand .*--nonsense.* failed with exit code 1"):
        kafka_consumer_groups(broker.bootstrap_servers, "--nonsense")


def test_two_brokers_run_side_by_side_and_leave_nothing(broker: SandboxBroker, make_topic: MakeTopic) -> None:
    topic = make_topic("here")
    with SandboxBroker() as other:
        assert other.bootstrap_servers != broker.bootstrap_servers
        create_topics(other.bootstrap_servers, "there")
        names = AdminClient({"bootstrap.servers": other.bootstrap_servers}).list_topics(timeout=60).topics
        assert "there" in names
        assert topic not in names
        pid, folder = other.pid, other.folder
    assert not psutil.pid_exists(pid)
    assert not folder.exists()
    assert psutil.pid_exists(broker.pid)


def test_data_and_address_survive_a_restart_a_kill_and_a_pause(tmp_path: Path) -> None:
    with SandboxBroker(tmp_path / "node") as own:
        address = own.bootstrap_servers
        create_topics(address, "kept")
        produce(own, "kept", b"a")

        own.restart()
        produce(own, "kept", b"b")

        own.kill()
        own.start()
        assert own.bootstrap_servers == address
        assert consume(own, "kept", 2) == [b"a", b"b"]

        own.pause()
        with pytest.raises(KafkaException):
            end_offset(own, "kept", timeout=0.5)
        own.resume()
        assert end_offset(own, "kept", timeout=60) == 2
        own.pause()  # and a paused broker can be stopped

    with SandboxBroker(tmp_path / "node") as again:
        assert consume(again, "kept", 2) == [b"a", b"b"]


PARENT = """
import sys, threading, time
from airflow_provider_kpipe.sandbox import SandboxBroker

broker = SandboxBroker()
thread = threading.Thread(target=broker.start)
thread.start()
thread.join()
sys.stdout.write(f"{broker.pid} {broker.folder}\\n")
sys.stdout.flush()
time.sleep(600)
"""


def test_the_broker_outlives_the_thread_that_started_it_but_not_the_process() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        with parent.stdout:
            pid, folder = parent.stdout.readline().split()
        assert not wait_until_gone(int(pid), seconds=0.5)
    finally:
        parent.kill()
        parent.wait()
    assert wait_until_gone(int(pid))
    shutil.rmtree(folder)


def test_the_command_prints_the_address_and_stops_when_told_to() -> None:
    command = [sys.executable, "-m", "airflow_provider_kpipe.sandbox"]
    sandbox = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert sandbox.stdout is not None
        with sandbox.stdout:
            address = sandbox.stdout.readline().strip()
        assert AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).brokers
        (child,) = psutil.Process(sandbox.pid).children()
        sandbox.terminate()
        assert sandbox.wait(60) == 0
        assert not psutil.pid_exists(child.pid)
    finally:
        sandbox.kill()
        sandbox.wait()


def test_the_command_listens_where_it_is_told_with_the_topics_that_it_is_told(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "airflow_provider_kpipe.sandbox", "--port", str(port), "--folder", str(tmp_path)]
    # The second time, the folder has the first topic already.
    for topics in (["orders:3"], ["orders:3", "other"]):
        asked = [word for topic in topics for word in ("--topic", topic)]
        sandbox = subprocess.Popen([*command, *asked], stdout=subprocess.PIPE, text=True)
        try:
            assert sandbox.stdout is not None
            with sandbox.stdout:
                address = sandbox.stdout.readline().strip()
            assert address == f"127.0.0.1:{port}"
            found = AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics
            assert {name: len(topic.partitions) for name, topic in found.items()}["orders"] == 3
            assert ("other" in found) == ("other" in topics)
            assert told_by_tool("kafka-get-offsets", "--bootstrap-server", address, "--topic", "orders") == [
                "orders:0:0",
                "orders:1:0",
                "orders:2:0",
            ]
        finally:
            sandbox.terminate()
            assert sandbox.wait(60) == 0


def told_by_tool(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "airflow_provider_kpipe.sandbox.tools", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.split()


@pytest.mark.parametrize("name", TOOLS)
def test_each_of_kafkas_tools_is_there(name: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "airflow_provider_kpipe.sandbox.tools", name, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "--bootstrap-server" in asked.stdout + asked.stderr


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    own = SandboxBroker(tmp_path, overrides={"authorizer.class.name": "no.such.Authorizer"})
    with pytest.raises(SandboxError, match=r"(?s)ended by itself.*no\.such\.Authorizer"):
        own.start()
    with pytest.raises(SandboxError, match="not running"):
        own.pause()


def test_a_setting_that_kafka_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"(?s)could not format.*num\.partitions"):
        SandboxBroker(tmp_path, overrides={"num.partitions": "many"}).start()


def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "new_cluster_id", lambda: "-kU3OEVBNTcwNTJENDM2Qg")
    with SandboxBroker(tmp_path) as own:
        admin = AdminClient({"bootstrap.servers": own.bootstrap_servers})
        assert admin.describe_cluster(request_timeout=60).result().cluster_id == "-kU3OEVBNTcwNTJENDM2Qg"


def test_an_altered_jar_in_the_cache_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = kafka_jars()[0].parent
    copy = tmp_path / cached.name
    copy.mkdir()
    for jar in cached.iterdir():
        os.symlink(jar, copy / jar.name)
    (victim,) = copy.glob("kafka_2.13-*.jar")
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.unlink()
    victim.write_bytes(content)
    monkeypatch.setenv("KPIPE_CACHE", str(tmp_path))
    with pytest.raises(SandboxError, match=r"kafka_2\.13-4\.2\.0\.jar has sha256 .* Remove that folder"):
        SandboxBroker().start()
