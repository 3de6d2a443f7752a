"""The checker reads a real broker: what is committed, what is aborted, and what groups have committed."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import TopicPartition

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.conftest import MakeTopic
from tests.kit import topics
from tests.kit.topics import Sent
from tests.torture.checker.dump import Ends, aborted_file, committed_file, digest_of, read_cluster_file, read_rows
from tests.torture.checker.reading import read_cluster


def test_it_reads_what_is_committed_and_what_is_aborted(
    broker: SandboxBroker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, bootstrap = make_topic("read", partitions=2), broker.bootstrap_servers
    headers: list[tuple[str, bytes | None]] = [("a", b"\xff"), ("a", None)]
    topics.fill(bootstrap, topic, [Sent(b"zero", b"0", 1, headers, timestamp=5)])
    topics.fill_in_transactions(bootstrap, topic, [([Sent(b"one", b"1", 1)], False), ([Sent(None, b"2", 1)], True)])
    read_cluster(bootstrap, tmp_path, [topic], {})
    first, second = read_rows(committed_file(tmp_path, topic))
    assert (first.partition, first.offset, first.id, first.digest, first.timestamp) == (1, 0, 0, digest_of(b"zero"), 5)
    assert [tuple(each) for each in first.headers] == [("a", "\xff"), ("a", None)]
    assert (second.offset, second.id, second.digest) == (3, 2, "")
    assert [(each.offset, each.id) for each in read_rows(aborted_file(tmp_path, topic))] == [(1, 1)]
    assert read_cluster_file(tmp_path).ends == {topic: {0: Ends(0, 0, 0), 1: Ends(0, 5, 5)}}


def test_it_reads_every_commit_of_a_group(broker: SandboxBroker, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic, bootstrap = make_topic("committed"), broker.bootstrap_servers
    group = f"{topic}-group"
    topics.fill(bootstrap, topic, topics.numbered(9))
    topics.commit(bootstrap, group, topic, {0: 3})
    topics.hold(bootstrap, group, TopicPartition(topic, 0, 7, "a mark"))
    topics.commit(bootstrap, group, topic, {0: 5})
    read_cluster(bootstrap, tmp_path, [topic], {group: topic})
    cluster = read_cluster_file(tmp_path)
    assert cluster.committed == {group: {topic: {0: 5}}}
    # The client writes the end of a text, too.
    commits = [(each.offset, each.metadata.rstrip("\0")) for each in cluster.commits if each.group == group]
    assert commits == [(3, ""), (7, "a mark"), (5, "")]
