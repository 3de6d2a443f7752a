"""Pipelines that read a format, change values and write them again, with a schema registry behind a password."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from formats_kit import AVRO, JSON_SCHEMA, Order
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from airflow_provider_kpipe.contract.pipeline.declaration import Delivery
from airflow_provider_kpipe.contract.pipeline.policies import RetryPolicy
from airflow_provider_kpipe.contract.progress.progress import Counts, PartitionProgress
from airflow_provider_kpipe.sandbox import SandboxBroker
from tests.kit.pipelines import Bench
from tests.kit.schema_registry import Registry, running_registry
from tests.kit.topics import Seen, Sent, committed, fill, read_all

DELIVERIES: tuple[Delivery, ...] = ("exactly_once", "at_least_once")
both_deliveries = pytest.mark.parametrize("delivery", DELIVERIES)

JSON = "airflow_provider_kpipe.formats.json"
AVRO_SEGMENTS = ("airflow_provider_kpipe.formats.avro:Read", "formats_kit:saw", "formats_kit:WriteAvro")
# What a schema's id is written as.
FRAME = {schema_id: b"\x00" + schema_id.to_bytes(4, "big") for schema_id in range(1, 100)}
ORDERS = [(FRAME[1] + bytes([2 * number, 0]), number) for number in range(20)]


@pytest.fixture
def registry() -> Iterator[Registry]:
    """The first schema is that of what is read."""
    with running_registry() as running:
        running.register("orders-value", AVRO)
        yield running


def run(
    broker: SandboxBroker, registry: Registry, records: list[Sent], *segments: str, **spec: Any
) -> tuple[Bench, PartitionProgress]:
    bench = replace(Bench.make(broker.bootstrap_servers, segments=segments, **spec), registry=registry.settings)
    fill(bench.bootstrap, bench.topic, records)
    return bench, work(bench)


def work(bench: Bench) -> PartitionProgress:
    (progress,) = bench.work(bench.plan())
    return progress


def output(bench: Bench) -> list[Seen]:
    return read_all(bench.bootstrap, bench.output)


def stored(bench: Bench) -> dict[int, int]:
    return committed(bench.bootstrap, f"{bench.pipeline.group}.kpipe", bench.topic, 1)


@both_deliveries
def test_json_is_read_changed_and_written(broker: SandboxBroker, registry: Registry, delivery: Delivery) -> None:
    headers = [("a", b"\xff"), ("b", None)]
    sent = [Sent(b'{ "id": 1, "name": "\xc3\xa9" }', b'"k"', headers=headers), Sent(None, b'"k"'), Sent(b"{1}", b'"k"')]
    segments = [f"{JSON}:read", f"{JSON}:read_key", "formats_kit:saw", f"{JSON}:write_key", f"{JSON}:write"]

    bench, progress = run(broker, registry, sent, *segments, delivery=delivery)

    assert progress.counts == Counts(read=3, written=2, dead_lettered=1)
    first, tombstone = output(bench)
    assert (first.value, first.key, first.headers) == (b'{"id":1,"name":"\xc3\xa9","seen":true}', b'"k"', headers)
    assert (tombstone.value, tombstone.key) == (None, b'"k"')
    (dead,) = read_all(bench.bootstrap, bench.dead)
    assert (dead.value, dead.header("kpipe-fault-component")) == (b"{1}", f"{JSON}:read")
    assert "line 1 column 2 (char 1)" in dead.header("kpipe-fault-message")
    assert registry.asked == []


@both_deliveries
def test_avro_is_read_changed_and_written(broker: SandboxBroker, registry: Registry, delivery: Delivery) -> None:
    sent = [Sent(value, str(number).encode(), headers=[("a", b"1")]) for value, number in ORDERS] + [Sent(None, b"t")]
    segments = [AVRO_SEGMENTS[0], "formats_kit:saw", "formats_kit:RegisterAvro"]

    bench, progress = run(broker, registry, sent, *segments, delivery=delivery)

    assert progress.complete, progress.reason
    assert progress.counts == Counts(read=21, written=21)
    *orders, tombstone = output(bench)
    # The second byte of what Avro made is the flag that was set.
    assert [(each.value, each.key, each.headers) for each in orders] == [
        (FRAME[1] + bytes([2 * number, 1]), str(number).encode(), [("a", b"1")]) for number in range(20)
    ]
    assert (tombstone.value, tombstone.key) == (None, b"t")
    assert registry.subjects[f"{bench.output}-value"] == [1]
    assert registry.asked == ["GET /schemas/ids/1", f"POST /subjects/{bench.output}-value/versions"]


def test_json_schema_is_read_changed_and_written(broker: SandboxBroker, registry: Registry) -> None:
    schema_id = registry.register("json", JSON_SCHEMA, "JSON")
    sent = [Sent(FRAME[schema_id] + json.dumps({"id": number}).encode()) for number in range(5)] + [Sent(None)]
    module = "airflow_provider_kpipe.formats.json_schema"

    bench, progress = run(broker, registry, sent, f"{module}:Read", "formats_kit:saw", "formats_kit:RegisterJsonSchema")

    assert progress.counts == Counts(read=6, written=6)
    *orders, tombstone = output(bench)
    assert {(each.value or b"")[:5] for each in orders} == {FRAME[schema_id]}
    assert [json.loads((each.value or b"")[5:]) for each in orders] == [{"id": at, "seen": True} for at in range(5)]
    assert tombstone.value is None


@pytest.mark.parametrize("writer", ["RegisterProtobuf", "WriteProtobuf"])
def test_protobuf_is_read_changed_and_written(broker: SandboxBroker, registry: Registry, writer: str) -> None:
    bench = Bench.make(
        broker.bootstrap_servers, segments=["formats_kit:ReadProtobuf", "formats_kit:saw", f"formats_kit:{writer}"]
    )
    bench = replace(bench, registry=registry.settings)
    file = FileDescriptorProto()
    Order.DESCRIPTOR.file.CopyToProto(file)
    schema = base64.standard_b64encode(file.SerializeToString()).decode()
    schema_id = registry.register(f"{bench.output}-value", schema, "PROTOBUF")
    # The id, then the way to the message: one step, to the second of its file.
    frame = FRAME[schema_id] + b"\x02\x02"
    sent = [Sent(frame + Order(id=number).SerializeToString()) for number in range(5)] + [Sent(None)]
    fill(bench.bootstrap, bench.topic, sent)

    progress = work(bench)

    assert progress.complete, progress.reason
    assert progress.counts == Counts(read=6, written=6)
    *orders, tombstone = output(bench)
    assert [each.value for each in orders] == [frame + Order(id=at, seen=True).SerializeToString() for at in range(5)]
    assert tombstone.value is None


@both_deliveries
def test_a_fault_of_a_record_becomes_a_dead_letter(
    broker: SandboxBroker, registry: Registry, delivery: Delivery
) -> None:
    broken = [b"{}", FRAME[99] + b"\x02\x00", FRAME[1] + b"\xff", b""]
    sent = [Sent(value) for value, _ in ORDERS[:5]] + [Sent(value) for value in broken]
    segments = [AVRO_SEGMENTS[0], "formats_kit:with_text", "formats_kit:RegisterAvro"]

    bench, progress = run(broker, registry, sent, *segments, delivery=delivery)

    assert progress.counts == Counts(read=9, written=4, dead_lettered=5)
    assert [each.value for each in output(bench)] == [value for value, number in ORDERS[:5] if number != 3]
    dead = read_all(bench.bootstrap, bench.dead)
    assert [each.value for each in dead] == [ORDERS[3][0], *broken]
    written, *read = [each.header("kpipe-fault-component") for each in dead]
    assert (written, set(read)) == ("formats_kit:RegisterAvro", {AVRO_SEGMENTS[0]})
    assert "Schema not found" in dead[2].header("kpipe-fault-message")


REFUSALS = {
    "credentials": ({"basic.auth.user.info": "kpipe:wrong"}, "SchemaRegistryError: Unauthorized (HTTP status code 401"),
    "nobody there": ({"url": "http://127.0.0.1:1"}, "ConnectError"),
}


@both_deliveries
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("more", [[], ["batch_kit:untouched"]], ids=["records", "batches"])
def test_a_registry_that_refuses_stops_the_partition_and_loses_nothing(
    broker: SandboxBroker, registry: Registry, delivery: Delivery, refusal: str, more: list[str]
) -> None:
    wrong, told = REFUSALS[refusal]
    bench = Bench.make(broker.bootstrap_servers, segments=[*AVRO_SEGMENTS, *more], delivery=delivery)
    registry.register(f"{bench.output}-value", AVRO)
    fill(bench.bootstrap, bench.topic, [Sent(None), *(Sent(value) for value, _ in ORDERS)])

    progress = work(replace(bench, registry={**registry.settings, **wrong}))

    assert (progress.next_offset, progress.counts) == (1, Counts(read=1, written=1))
    assert told in str(progress.reason)
    assert str(progress.reason).startswith("offset 1: segment airflow_provider_kpipe.formats.avro:Read: ")
    assert "schema.registry.* in the extra of the source's Airflow connection" in str(progress.reason)
    assert stored(bench) == {0: 1}
    assert read_all(bench.bootstrap, bench.dead) == []
    assert registry.password not in str(progress.reason)

    progress = work(replace(bench, registry=registry.settings))

    assert progress.complete, progress.reason
    assert [each.value for each in output(bench)] == [None, *(value[:-1] + b"\x01" for value, _ in ORDERS)]


def test_a_registry_that_comes_back_within_the_tries_costs_nothing(
    broker: SandboxBroker, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([(503, {"error_code": 50301, "message": "starting"})] * 2)
    answer = registry.answer

    def late(*asked: Any) -> Any:
        return next(answers, None) or answer(*asked)

    monkeypatch.setattr(registry, "answer", late)

    bench, progress = run(
        broker,
        registry,
        [Sent(value) for value, _ in ORDERS],
        AVRO_SEGMENTS[0],
        "formats_kit:saw",
        "formats_kit:RegisterAvro",
        retry=RetryPolicy.fixed(3, 0.01, retry_on=["airflow_provider_kpipe.segments.StopPartitionError"]),
    )

    assert progress.counts == Counts(read=20, written=20, retried=2)
    assert len(output(bench)) == 20


def test_a_schema_that_is_not_registered_stops_the_partition(broker: SandboxBroker, registry: Registry) -> None:
    bench, progress = run(broker, registry, [Sent(value) for value, _ in ORDERS], *AVRO_SEGMENTS)

    assert (progress.next_offset, stored(bench)) == (0, {0: 0})
    assert f"does not have the schema of subject '{bench.output}-value'" in str(progress.reason)
    assert "`auto_register = True`" in str(progress.reason)
    assert registry.subjects == {"orders-value": [1]}


def test_a_registry_that_the_connection_does_not_name_is_asked_for(broker: SandboxBroker, registry: Registry) -> None:
    bench = Bench.make(broker.bootstrap_servers, segments=AVRO_SEGMENTS)
    fill(bench.bootstrap, bench.topic, [Sent(ORDERS[0][0])])

    progress = work(bench)

    assert progress.next_offset == 0
    assert 'did not open: ValueError: no schema registry is named: add "schema.registry.url"' in str(progress.reason)
