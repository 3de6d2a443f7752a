"""What all formats with a schema registry have in common; Avro stands for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryError
from formats_kit import AVRO, ReadProtobuf, WriteAnything, WriteAvro, WriteJsonSchema

from airflow_provider_kpipe.formats import avro, json_schema
from airflow_provider_kpipe.formats.registry import TIMEOUT_SECONDS, Reader, Writer, client_settings
from airflow_provider_kpipe.segments import SegmentContext, StopPartitionError
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.processing.segment_chain import SegmentChain
from tests.kit.schema_registry import Registry, running_registry

MakeRecord = Callable[..., Any]
Opened = Callable[[type, SegmentContext], Any]

ORDER_41 = b"\x00\x00\x00\x00\x01\x52\x01"


@pytest.fixture(scope="module")
def server() -> Iterator[Registry]:
    with running_registry() as running:
        running.register("out-value", AVRO)
        yield running


@pytest.fixture
def reached(server: Registry, context: SegmentContext) -> SegmentContext:
    return replace(context, source_registry=server.settings, destination_registry=server.settings)


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens segments, and closes them after the test."""
    with ExitStack() as stack:

        def opened_segment(segment: type, context: SegmentContext) -> Any:
            made = segment()
            made.open(context)
            stack.callback(made.close)
            return made

        yield opened_segment


def test_a_schema_is_asked_for_once(
    opened: Opened, server: Registry, reached: SegmentContext, record: MakeRecord
) -> None:
    server.asked.clear()
    reader = opened(avro.Read, reached)
    assert [reader.process(record(ORDER_41)).value["id"] for _ in range(3)] == [41] * 3
    assert server.asked == ["GET /schemas/ids/1"]


def test_the_newest_schema_is_asked_for_once(
    opened: Opened, server: Registry, reached: SegmentContext, record: MakeRecord
) -> None:
    server.asked.clear()
    writer = opened(avro.Write, reached)
    assert {writer.process(record({"id": 41, "seen": True})).value for _ in range(3)} == {ORDER_41}
    assert server.asked == ["GET /subjects/out-value/versions/latest"]


def test_reading_asks_the_sources_registry_and_writing_the_destinations(
    opened: Opened, server: Registry, context: SegmentContext, record: MakeRecord
) -> None:
    with running_registry() as other:
        other.register("something-else", '"string"')
        other.register("out-value", AVRO)
        apart = replace(context, source_registry=server.settings, destination_registry=other.settings)
        read = opened(avro.Read, apart).process(record(ORDER_41))
        assert opened(avro.Write, apart).process(read).value == b"\x00\x00\x00\x00\x02\x52\x01"


def test_an_id_in_a_header_is_gone_after_reading(
    opened: Opened, server: Registry, reached: SegmentContext, record: MakeRecord
) -> None:
    headers = [("a", b"1"), ("__value_schema_id", b"\x00\x00\x00\x00\x01"), ("__key_schema_id", b"?"), ("a", None)]
    read = opened(avro.Read, reached).process(record(ORDER_41[5:] + b"pad.", headers=headers))
    assert read.value == {"id": 41, "seen": True}
    assert read.headers == [("a", b"1"), ("__key_schema_id", b"?"), ("a", None)]


@pytest.mark.parametrize("schema_id", [7, 2**31 - 1, 2**31, 2**32 - 1])
def test_an_unknown_schema_is_the_records_fault(
    opened: Opened,
    server: Registry,
    reached: SegmentContext,
    record: MakeRecord,
    schema_id: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if schema_id >= 2**31:
        # Confluent's registry knows no such page.
        monkeypatch.setattr(server, "failing", (404, {"error_code": 404, "message": "HTTP 404 Not Found"}))
    with pytest.raises(SchemaRegistryError, match="404"):
        opened(avro.Read, reached).process(record(b"\x00" + schema_id.to_bytes(4, "big") + b"\x52\x01"))


FAILURES = [
    (401, {"error_code": 401, "message": "Unauthorized"}),
    (403, {"error_code": 40301, "message": "Forbidden"}),
    (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
    (500, {"error_code": 50001, "message": "Error in the backend data store"}),
    (503, {}),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: each[0])
@pytest.mark.parametrize("segment", [avro.Read, avro.Write, WriteAvro])
def test_a_rejection_of_the_registry_is_no_records_fault(
    opened: Opened,
    server: Registry,
    reached: SegmentContext,
    record: MakeRecord,
    failure: Any,
    segment: type,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "failing", failure)
    end = "source" if issubclass(segment, Reader) else "destination"
    with pytest.raises(
        StopPartitionError, match=rf"the {end}'s schema registry did not do .* {failure[0]}.*{end}'s Ai"
    ):
        opened(segment, reached).process(record(ORDER_41 if end == "source" else {"id": 41}))


@pytest.mark.parametrize("segment", [avro.Read, avro.Write])
def test_a_registry_that_is_down_is_no_records_fault(
    opened: Opened, context: SegmentContext, record: MakeRecord, segment: type
) -> None:
    with running_registry() as gone:
        settings = gone.settings
    lost = replace(context, source_registry=settings, destination_registry=settings)
    with pytest.raises(StopPartitionError, match="ConnectError"):
        opened(segment, lost).process(record(ORDER_41 if segment is avro.Read else {"id": 41}))


@pytest.mark.parametrize("payload", [b"\x00\x80\x01pad", b"\x00\xff\xff\xff\xff\x52\x01"], ids=bytes.hex)
def test_a_payload_whose_id_is_in_a_header_may_begin_with_anything(
    opened: Opened, context: SegmentContext, record: MakeRecord, payload: bytes
) -> None:
    with running_registry() as gone:
        settings = gone.settings
    reader = opened(avro.Read, replace(context, source_registry=settings))
    headers = [("a", b"1"), ("__value_schema_id", b"\x00\x00\x00\x00\x01")]
    with pytest.raises(StopPartitionError, match="ConnectError"):
        reader.process(record(payload, headers=headers))


def test_an_id_in_a_header_that_is_too_large_is_the_records_fault(
    opened: Opened, server: Registry, reached: SegmentContext, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "failing", (404, {"error_code": 404, "message": "HTTP 404 Not Found"}))
    headers = [("__value_schema_id", b"\x00\x80\x00\x00\x00")]
    with pytest.raises(SchemaRegistryError, match="404"):
        opened(avro.Read, reached).process(record(ORDER_41[5:] + b"pad.", headers=headers))


@pytest.mark.parametrize("segment", [avro.Write, WriteAvro, json_schema.Write, WriteJsonSchema])
def test_a_schema_that_is_not_registered_is_no_records_fault(
    opened: Opened, reached: SegmentContext, record: MakeRecord, segment: type
) -> None:
    told = (
        f"does not have the schema of subject 'new-value' .*register it, or let {segment.__name__} do so "
        "with `auto_register = True`"
    )
    with pytest.raises(StopPartitionError, match=told):
        opened(segment, reached).process(record({"id": 41}, topic="new"))


class ByRecord(avro.Write):
    subject_names = "RECORD"


@pytest.mark.parametrize(("segment", "named"), [(WriteAnything, "auto_register"), (ByRecord, "subject_names")])
def test_the_error_names_the_setting_that_needs_a_schema(
    opened: Opened, context: SegmentContext, segment: type[Writer], named: str
) -> None:
    with pytest.raises(ValueError, match=f"{segment.__name__} sets {named}, which needs a schema: set `schema` too"):
        opened(segment, context)


@pytest.mark.parametrize("end", ["source", "destination"])
@pytest.mark.parametrize("settings", [{}, {"url": ""}, {"timeout": "3"}], ids=repr)
def test_a_registry_that_is_not_named_is_asked_for(end: str, settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f'add "schema.registry.url" to the extra of .* the pipeline\'s {end}'):
        client_settings(settings, end)


def test_numbers_become_numbers_and_no_answer_is_awaited_forever() -> None:
    assert client_settings({"url": "http://registry", "max.retries": "5", "proxy": "1"}, "source") == {
        "url": "http://registry",
        "timeout": TIMEOUT_SECONDS,
        "max.retries": 5.0,
        "proxy": "1",
    }
    assert client_settings({"url": "http://registry", "timeout": "2.5"}, "source")["timeout"] == 2.5


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"schema\.registry\.timeout='soon' is not a number"):
        client_settings({"url": "http://registry", "timeout": "soon"}, "source")


@pytest.mark.parametrize("missing", ["httpx2", "confluent_kafka.schema_registry.avro"])
def test_without_the_extra_the_error_says_what_to_install(
    context: SegmentContext, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PartitionHaltedError) as stop:
        SegmentChain(["airflow_provider_kpipe.formats.avro:Read"], context).open()
    told = str(stop.value)
    assert "pip install 'confluent-kafka[avro,json,protobuf,schemaregistry]' on the executors" in told
    assert missing in told


def test_a_context_shows_no_secret(reached: SegmentContext, server: Registry) -> None:
    assert server.password not in repr(reached)
    assert server.password in str(reached.source_registry)


@pytest.mark.parametrize("segment", [avro.Read, WriteAvro, ReadProtobuf])
def test_a_segment_that_is_closed_has_closed_its_client(opened: Opened, reached: SegmentContext, segment: type) -> None:
    made = opened(segment, reached)
    made.close()
    assert made._client._rest_client.session.is_closed
