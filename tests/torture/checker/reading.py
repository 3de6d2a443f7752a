"""Reads a cluster into files, as a program would that knows nothing of the product."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.torture.checker.dump import (
    DUMP,
    HISTORY,
    Cluster,
    Commit,
    Ends,
    Row,
    aborted_file,
    committed_file,
    digest_of,
    line_of,
    write_cluster,
)
from tests.torture.checker.events import read_history
from tests.torture.checker.known import Known

OFFSETS_TOPIC = "__consumer_offsets"
# A transaction that nobody ends is aborted by the broker after a minute, which looks for such every ten seconds.
LONGEST_WAIT = 100.0


def read_everything(bootstrap: str, folder: Path) -> None:
    """Read all topics and groups that the history in a folder names, into `dump` beside it."""
    known = Known(read_history(folder / HISTORY))
    topics, groups = set(), {}
    for pipeline in known.pipelines.values():
        declared = pipeline.declared
        topics |= {declared.source, declared.destination, declared.dead_letter or declared.destination}
        groups[declared.group] = declared.source
    read_cluster(bootstrap, folder / DUMP, sorted(topics), groups)


def read_cluster(bootstrap: str, folder: Path, topics: Sequence[str], groups: Mapping[str, str]) -> None:
    """Read everything. No one works any more.

    :param groups: the topic of each group whose offsets are asked for in the end
    """
    folder.mkdir(parents=True, exist_ok=True)
    ends = {topic: _ends(bootstrap, topic) for topic in topics}
    for topic in topics:
        _read_topic(bootstrap, folder, topic, ends[topic])
    committed = {group: {topic: _held(bootstrap, group, topic, ends[topic])} for group, topic in groups.items()}
    write_cluster(folder, Cluster(ends, committed, list(_commits(bootstrap))))


@contextmanager
def _reading(bootstrap: str, isolation: str, group: str = "torture-checker") -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _ends(bootstrap: str, topic: str) -> dict[int, Ends]:
    """Once readers see everything, or it has been waited for that long enough."""
    with ExitStack() as opened:
        reader, other = (
            opened.enter_context(_reading(bootstrap, each)) for each in ("read_committed", "read_uncommitted")
        )
        found = reader.list_topics(topic, timeout=30).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        deadline = time.monotonic() + LONGEST_WAIT
        ends: dict[int, Ends] = {}
        for partition in sorted(found.partitions):
            asked = TopicPartition(topic, partition)
            while True:
                low, stable = reader.get_watermark_offsets(asked, timeout=30)
                _, high = other.get_watermark_offsets(asked, timeout=30)
                if stable >= high or time.monotonic() > deadline:
                    break
                time.sleep(0.2)
            ends[partition] = Ends(low, stable, high)
        return ends


def _read_topic(bootstrap: str, folder: Path, topic: str, ends: Mapping[int, Ends]) -> None:
    seen: dict[int, bytearray] = {each: bytearray(max(0, at.high - at.low)) for each, at in ends.items()}
    with committed_file(folder, topic).open("w", encoding="utf-8") as file:
        for message in _messages(bootstrap, topic, ends, "read_committed"):
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset < ends[partition].high:
                seen[partition][offset - ends[partition].low] = 1
                file.write(line_of(_row(message)))
    with aborted_file(folder, topic).open("w", encoding="utf-8") as file:
        for message in _messages(bootstrap, topic, ends, "read_uncommitted"):
            partition, offset = message.partition() or 0, message.offset() or 0
            if offset < ends[partition].high and not seen[partition][offset - ends[partition].low]:
                file.write(line_of(_row(message)))


def _row(message: Message) -> Row:
    key = message.key()
    headers: Any = message.headers() or ()
    return Row(
        message.partition() or 0,
        message.offset() or 0,
        None if key is None else bytes(key).decode("latin-1"),
        digest_of(message.value()),
        message.timestamp()[1],
        [(name, None if value is None else bytes(value).decode("latin-1")) for name, value in headers],
    )


def _messages(bootstrap: str, topic: str, ends: Mapping[int, Ends], isolation: str) -> Iterator[Message]:
    waiting = {each for each, at in ends.items() if at.low < at.high}
    if not waiting:
        return
    with _reading(bootstrap, isolation) as consumer:
        consumer.assign([TopicPartition(topic, each, ends[each].low) for each in sorted(waiting)])
        quiet_since = time.monotonic()
        while waiting:
            messages = consumer.consume(5_000, 0.1)
            if messages:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > LONGEST_WAIT:
                raise TimeoutError(f"nothing comes of partitions {sorted(waiting)} of {topic!r}")
            for message in messages:
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition() or 0)
                elif not error.retriable():
                    raise KafkaException(error)


def _held(bootstrap: str, group: str, topic: str, ends: Mapping[int, Ends]) -> dict[int, int]:
    with _reading(bootstrap, "read_committed", group) as consumer:
        answers = consumer.committed([TopicPartition(topic, each) for each in ends], timeout=60)
        return {each.partition: each.offset for each in answers if each.offset >= 0}


def _commits(bootstrap: str) -> Iterator[Commit]:
    """All of them, as the coordinators have written them down, as far as nothing was compacted."""
    ends = _ends(bootstrap, OFFSETS_TOPIC)
    for message in _messages(bootstrap, OFFSETS_TOPIC, ends, "read_committed"):
        key = message.key()
        if key is not None and (commit := commit_of(bytes(key), message.value(), message.timestamp()[1])):
            yield commit


def commit_of(key: bytes, value: bytes | None, timestamp: int) -> Commit | None:
    """None for what is no commit."""
    (version,) = struct.unpack_from(">h", key)
    if version not in (0, 1):
        return None
    group, at = _text(key, 2)
    topic, at = _text(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    if value is None:
        return Commit(group, topic, partition, None, "", timestamp)
    version, offset = struct.unpack_from(">hq", value)
    # The leader epoch is there since version 3, and shorter lengths of texts since version 4.
    read = _short_text if version >= 4 else _text
    metadata, at = read(value, 14 if version >= 3 else 10)
    (time_,) = struct.unpack_from(">q", value, at)
    return Commit(group, topic, partition, offset, metadata, time_)


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + length].decode(errors="replace"), at + 2 + length


def _short_text(data: bytes, at: int) -> tuple[str, int]:
    length = shift = 0
    while True:
        byte, at = data[at], at + 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return data[at : at + length - 1].decode(errors="replace"), at + length - 1
