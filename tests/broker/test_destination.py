"""What the options of a destination make of records, on a real broker."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.topics import Sent, fill, numbered, read_all

# Keys and their hashes from the tests of Kafka's own clients, as unsigned numbers.
MURMUR2 = {
    b"21": 3_321_034_988,
    b"foobar": 3_504_634_814,
    b"a-little-bit-long-string": 3_308_985_760,
    b"a-little-bit-longer-string": 2_808_662_467,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": 4_236_069_325,
    b"abc": 479_470_107,
}
OUTPUTS = 7
# In the attributes of a record batch, by Kafka's protocol.
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}

ways = pytest.mark.parametrize("segments", [[], ["orders_kit:untouched"], ["batch_kit:untouched"]], ids=repr)


@ways
@pytest.mark.parametrize(
    ("destination", "place"),
    [
        ({}, lambda key: (MURMUR2[key] & 0x7FFFFFFF) % OUTPUTS),
        ({"partitioner": "consistent"}, lambda key: zlib.crc32(key) % OUTPUTS),
    ],
    ids=["as Java producers by default", "by crc32"],
)
def test_a_key_decides_on_the_partition(
    broker: SandboxBroker, segments: list[str], destination: dict[str, Any], place: Any
) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=segments, destination=destination, outputs=OUTPUTS)
    fill(bench.bootstrap, bench.topic, [Sent(key=key) for key in MURMUR2])
    bench.work(bench.plan())
    found = {each.key: each.partition for each in read_all(bench.bootstrap, bench.output)}
    assert found == {key: place(key) for key in MURMUR2}


@ways
def test_the_source_decides_where_it_is_kept(broker: SandboxBroker, segments: list[str]) -> None:
    kept = {"keep_partition": True, "keep_timestamp": False}
    bench = Bench.make(broker.bootstrap_servers, 3, segments=segments, destination=kept)
    fill(bench.bootstrap, bench.topic, [Sent(key=b"same", partition=at, timestamp=1_000) for at in range(3)])
    bench.work(bench.plan())
    found = read_all(bench.bootstrap, bench.output)
    assert sorted(each.partition for each in found) == [0, 1, 2]
    assert all(each.timestamp[1] > 1_000_000 for each in found)


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_compressed(broker: SandboxBroker, codec: str) -> None:
    bench = Bench.make(broker.bootstrap_servers, destination={"compression": codec})
    fill(bench.bootstrap, bench.topic, [Sent(b'{"id": 1}' * 50) for _ in range(20)])
    bench.work(bench.plan())
    assert len(read_all(bench.bootstrap, bench.output)) == 20
    log = next(broker.folder.rglob(f"{bench.output}-0/00000000000000000000.log")).read_bytes()
    assert log[22] & 0b111 == CODECS[codec]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize(
    "segments", [["orders_kit:to_its_own_place"], ["orders_kit:to_its_own_place", "batch_kit:untouched"]]
)
def test_a_segment_chooses_topic_and_partition(broker: SandboxBroker, segments: list[str], delivery: Any) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=segments, outputs=3, delivery=delivery)
    fill(bench.bootstrap, bench.topic, numbered(30))
    (progress,) = bench.work(bench.plan())
    assert (progress.complete, progress.counts.written) == (True, 30)
    for topic, rest in ((bench.output, 0), (bench.dead, 1)):
        found = read_all(bench.bootstrap, topic)
        assert sorted((int(each.key or b""), each.partition) for each in found) == [
            (at, at % 3) for at in range(30) if at % 2 == rest
        ]


@pytest.mark.parametrize("more", [[], ["batch_kit:untouched"]], ids=repr)
def test_a_record_that_a_segment_held_back_has_its_own_headers(broker: SandboxBroker, more: list[str]) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=["orders_kit:HoldsOneBack", *more])
    fill(bench.bootstrap, bench.topic, [Sent(b"%d" % at, headers=[("at", b"%d" % at)]) for at in range(5)])
    bench.work(bench.plan())
    found = read_all(bench.bootstrap, bench.output)
    assert [(each.value, each.header("at")) for each in found] == [(b"%d" % at, str(at)) for at in range(4)]
