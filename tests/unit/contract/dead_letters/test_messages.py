from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    LARGEST_COUNT,
    Coordinates,
    DeadLetter,
    FirstFault,
    Header,
)
from airflow_provider_kpipe.contract.dead_letters.dialects import (
    DIALECTS,
    FAULT_HEADERS,
    LENGTH_HEADER,
    Dialect,
    redrive_headers,
)
from airflow_provider_kpipe.contract.dead_letters.messages import (
    DeadLetterMessage,
    has_fault_headers,
    read_dead_letter,
    write_envelope,
    write_raw,
)
from airflow_provider_kpipe.contract.documents import OtherVersionError
from tests.kit.letters import BYTES, FAULT, HEADERS, LETTER, letters, strange_messages

Write = Callable[[DeadLetter, Dialect], DeadLetterMessage]

every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
every_format = pytest.mark.parametrize("write", [write_raw, write_envelope], ids=["raw", "envelope"])


@every_format
@every_dialect
@given(letter=letters())
def test_a_letter_comes_back_as_it_was_written(write: Write, dialect: Dialect, letter: DeadLetter) -> None:
    assert read_dead_letter(*write(letter, dialect)) == letter


@every_dialect
@given(letter=letters())
def test_the_records_own_headers_come_first_untouched_and_in_order(dialect: Dialect, letter: DeadLetter) -> None:
    written = write_raw(letter, dialect)
    assert tuple(written.headers[: len(letter.headers)]) == letter.headers
    assert all(name in FAULT_HEADERS for name, _ in written.headers[len(letter.headers) :])
    assert (written.key, written.value) == (letter.key, letter.value)


@every_dialect
def test_an_envelope_keeps_the_key_and_has_the_records_headers_inside_only(dialect: Dialect) -> None:
    written = write_envelope(LETTER, dialect)
    assert written.key == LETTER.key
    assert {name for name, _ in written.headers} <= FAULT_HEADERS
    assert dict(written.headers)["kpipe-dead-letter-format"] == b"envelope"


@every_format
@every_dialect
def test_a_record_that_dies_repeatedly_does_not_grow(write: Write, dialect: Dialect) -> None:
    sizes = []
    letter = LETTER
    for times in range(1, 6):
        assert letter.attempt == times
        written = write(letter, dialect)
        sizes.append((len(written.headers), len(written.value)))
        previous = read_dead_letter(*written)
        assert previous
        arrived = replace(
            LETTER,
            key=written.key,
            value=written.value,
            headers=tuple(written.headers),
            source=Coordinates("orders.dead", 3, 5, 1_700_000_000_000, "create_time"),
        )
        letter = arrived.after(previous)
    assert letter.headers == LETTER.headers
    assert sizes[1:] == [sizes[1]] * 4


@given(
    dialects=st.lists(st.sampled_from(list(DIALECTS.values())), min_size=2, max_size=4),
    writes=st.lists(st.sampled_from([write_raw, write_envelope]), min_size=4, max_size=4),
)
def test_a_letter_may_pass_through_dialects_and_formats(dialects: list[Dialect], writes: list[Write]) -> None:
    letter = LETTER
    for dialect, write in zip(dialects, writes):  # noqa: B905  # there are more formats than are needed
        previous = read_dead_letter(*write(letter, dialect))
        assert previous == letter
        letter = replace(LETTER, fault=replace(FAULT, message="later")).after(previous)
    assert letter.attempt == len(dialects) + 1
    assert letter.first
    assert letter.first.message == FAULT.message
    assert (letter.key, letter.value, letter.headers) == (LETTER.key, LETTER.value, LETTER.headers)


BY_OTHERS: dict[str, list[Header]] = {
    "connect": [
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"5"),
        ("__connect.errors.connector.name", b"jdbc-sink"),
        ("__connect.errors.task.id", b"0"),
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
        ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        ("__connect.errors.exception.message", b"no schema"),
    ],
    "spring": [
        ("kafka_dlt-exception-cause-fqcn", b"org.apache.kafka.connect.errors.DataException"),
        ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("kafka_dlt-exception-message", b"no schema"),
        ("kafka_dlt-exception-stacktrace", b"at ..."),
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-partition", b"\x00\x00\x00\x03"),
        ("kafka_dlt-original-offset", b"\x00\x00\x00\x00\x00\x00\x00\x05"),
        ("kafka_dlt-original-timestamp", b"\x00\x00\x01\x8b\xcf\xe5\x68\x00"),
        ("kafka_dlt-original-timestamp-type", b"CreateTime"),
    ],
    "streams": [
        ("__streams.errors.exception", b"org.apache.kafka.connect.errors.DataException"),
        ("__streams.errors.message", b"no schema"),
        ("__streams.errors.stacktrace", None),
        ("__streams.errors.topic", b"orders"),
        ("__streams.errors.partition", b"3"),
        ("__streams.errors.offset", b"5"),
    ],
}


@pytest.mark.parametrize("headers", BY_OTHERS.values(), ids=BY_OTHERS)
def test_a_letter_that_another_program_wrote_is_read(headers: list[Header]) -> None:
    letter = read_dead_letter(b"k", b"v", [("own", b"1"), *headers])
    assert letter
    assert (letter.source.topic, letter.source.partition, letter.source.offset) == ("orders", 3, 5)
    assert letter.fault.exception_class == "org.apache.kafka.connect.errors.DataException"
    assert letter.fault.message == "no schema"
    assert (letter.headers, letter.attempt, letter.first) == ((("own", b"1"),), 1, None)


def test_of_two_other_programs_the_last_one_is_believed() -> None:
    later = [(name, b"9" if name.endswith("offset") else raw) for name, raw in BY_OTHERS["connect"]]
    letter = read_dead_letter(None, None, [*BY_OTHERS["streams"], *later])
    assert letter
    assert letter.source.offset == 9


STAMPED: list[Header] = [
    ("kpipe-source-topic", b"raw"),
    ("kpipe-source-partition", b"0"),
    ("kpipe-source-offset", b"42"),
]


@every_dialect
def test_a_record_that_was_stamped_by_an_earlier_pipeline_keeps_its_stamp(dialect: Dialect) -> None:
    stamped = replace(LETTER, headers=(("a", b"1"), *STAMPED))
    written = write_raw(stamped, dialect)
    assert tuple(written.headers[:4]) == stamped.headers
    assert read_dead_letter(*written) == stamped


ONE_OF_OTHERS: list[Header] = [
    ("kafka_dlt-exception-message", b"mine"),
    ("__connect.errors.stage", b"two"),
    ("a", b"1"),
]


@every_format
@every_dialect
@pytest.mark.parametrize("first", [None, FirstFault("orders", 3, 2, "KeyError", "'id'", "")], ids=["once", "again"])
def test_a_header_of_the_records_own_stays_whatever_its_name(
    write: Write, dialect: Dialect, first: FirstFault | None
) -> None:
    letter = replace(LETTER, headers=(*ONE_OF_OTHERS, ("kpipe-fault-message", b"mine")), first=first)
    assert read_dead_letter(*write(letter, dialect)) == letter


def test_it_stays_in_a_record_that_was_put_back() -> None:
    headers = [*ONE_OF_OTHERS, *redrive_headers(LETTER)]
    letter = read_dead_letter(b"k", b"v", headers)
    assert letter
    assert (letter.source.offset, letter.headers) == (5, tuple(ONE_OF_OTHERS))


@every_dialect
@pytest.mark.parametrize("first", [None, FirstFault("orders", 3, 2, "KeyError", "'id'", "")], ids=["once", "again"])
def test_a_stamp_behind_a_record_that_was_put_back_stays(dialect: Dialect, first: FirstFault | None) -> None:
    own = (("trace", b"1"), ("kpipe-source-offset", b"7"))
    headers = [*own, *redrive_headers(replace(LETTER, first=first)), *STAMPED]
    letter = read_dead_letter(b"k", b"v", headers)
    assert letter
    assert (letter.source.topic, letter.source.offset, letter.first) == ("orders", 5, first)
    assert letter.headers == (*own, *STAMPED)
    # In the next pipeline's letter, too.
    assert read_dead_letter(*write_raw(replace(LETTER, headers=letter.headers), dialect)) == replace(
        LETTER, headers=letter.headers
    )


def test_it_stays_in_a_letter_that_others_have_added_to() -> None:
    written = write_raw(replace(LETTER, headers=tuple(ONE_OF_OTHERS)), DIALECTS["kpipe"])
    letter = read_dead_letter(b"k", b"v", [*written.headers, ("trace", b"1")])
    assert letter
    assert letter.headers == (*ONE_OF_OTHERS, ("trace", b"1"))


@pytest.mark.parametrize("headers", BY_OTHERS.values(), ids=BY_OTHERS)
def test_headers_that_a_mapper_writes_in_a_dialect_are_not_the_records_own(headers: list[Header]) -> None:
    letter = read_dead_letter(b"k", b"v", [("own", b"1"), *headers, *redrive_headers(LETTER)])
    assert letter
    assert (letter.headers, letter.fault.message) == ((("own", b"1"),), "no schema")


@every_format
@every_dialect
@given(letter=letters())
def test_the_last_header_says_how_many_are_ours(write: Write, dialect: Dialect, letter: DeadLetter) -> None:
    written = write(letter, dialect)
    own = letter.headers if write is write_raw else ()
    assert written.headers[-1] == (LENGTH_HEADER, str(len(written.headers) - len(own)).encode())


@every_dialect
@given(length=st.one_of(st.none(), BYTES, st.integers(0, 10_000).map(lambda each: b"%d" % each)))
def test_a_length_that_is_not_true_makes_no_letter_unreadable(dialect: Dialect, length: bytes | None) -> None:
    key, value, headers = write_raw(LETTER, dialect)
    found = read_dead_letter(key, value, [*headers[:-1], (LENGTH_HEADER, length)])
    assert found is not None
    assert (found.source.partition, found.source.offset, found.attempt) == (3, 5, 1)


@every_format
@every_dialect
def test_a_letter_from_before_there_was_a_length_is_read(write: Write, dialect: Dialect) -> None:
    key, value, headers = write(LETTER, dialect)
    assert read_dead_letter(key, value, headers[:-1]) == LETTER


def test_a_stamp_is_not_taken_for_what_another_program_says() -> None:
    letter = read_dead_letter(None, None, [*STAMPED, *BY_OTHERS["connect"]])
    assert letter
    assert (letter.source.topic, letter.source.offset, letter.headers) == ("orders", 5, tuple(STAMPED))


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("a", b"1")],
        [("kpipe-run-key", b"a run"), ("kpipe-fault-kind", b"source")],
        [*STAMPED],
        [*STAMPED[:2], ("kpipe-source-offset", b"five"), ("kpipe-dead-letter-attempt", b"1")],
        [*STAMPED[:2], ("kpipe-source-offset", None), ("kpipe-dead-letter-attempt", b"1")],
        [*STAMPED, ("kpipe-dead-letter-attempt", b"0")],
    ],
    ids=["no headers", "others", "no coordinates", "an output", "no number", "null", "no attempt"],
)
def test_a_message_that_does_not_say_where_it_came_from_is_no_letter(headers: list[Header]) -> None:
    assert read_dead_letter(b"k", b"v", headers) is None


def test_details_that_cannot_be_read_are_passed_over() -> None:
    headers = [
        ("kpipe-fault-kind", b"weather") if name == "kpipe-fault-kind" else (name, raw)
        for name, raw in DIALECTS["kpipe"].fault_headers(replace(LETTER, fault=replace(FAULT, kind="source")))
    ]
    letter = read_dead_letter(b"k", b"v", headers)
    assert letter
    assert (letter.fault.kind, letter.fault.message) == ("segment", "no amount")


@pytest.mark.parametrize("value", [b"{}", b"no json", b"\xff", None], ids=repr)
def test_of_an_envelope_that_was_changed_the_headers_still_tell(value: bytes | None) -> None:
    written = write_envelope(LETTER, DIALECTS["kpipe"])
    letter = read_dead_letter(written.key, value, written.headers)
    assert letter
    assert (letter.value, letter.source.offset, letter.pipeline) == (value, 5, "orders")


@pytest.mark.parametrize(
    "changes", [{"key": "no base64?"}, {"attempt": 0}, {"schema_version": "two"}, {"kpipe": "Plan 9.8.0"}], ids=repr
)
def test_an_envelope_that_somebody_has_been_at_is_not_taken_for_the_record(changes: dict[str, Any]) -> None:
    written = write_envelope(LETTER, DIALECTS["kpipe"])
    value = json.dumps({**json.loads(written.value), **changes}).encode()
    assert read_dead_letter(written.key, value, written.headers) is None


@every_dialect
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema_version": 2, "kpipe": "Envelope 9.8.0"}, r"schema_version is 2, written by kpipe 9\.8\.0.*: upgrade"),
        ({"schema_version": 2}, r"schema_version is 2, written by kpipe .* reads 1: upgrade kpipe here"),
        ({"kpipe": "Envelope 9.8.0", "fault": None}, r"Envelope\.fault: .*, written by kpipe 9\.8\.0, and this is"),
    ],
    ids=repr,
)
def test_an_envelope_of_another_version_is_refused_by_name(
    dialect: Dialect, changes: dict[str, Any], said: str
) -> None:
    written = write_envelope(LETTER, dialect)
    value = json.dumps({**json.loads(written.value), **changes}).encode()
    with pytest.raises(OtherVersionError, match=said):
        read_dead_letter(written.key, value, written.headers)


@given(key=BYTES, value=BYTES, headers=st.lists(st.tuples(st.sampled_from(sorted(FAULT_HEADERS)), BYTES)))
def test_nothing_that_is_read_raises(key: bytes | None, value: bytes | None, headers: list[Header]) -> None:
    letter = read_dead_letter(key, value, headers)
    assert letter is None or set(letter.headers) <= set(headers)


@every_format
@every_dialect
@given(message=strange_messages())
def test_any_message_becomes_a_letter_that_can_be_read(
    write: Write, dialect: Dialect, message: tuple[bytes | None, bytes | None, list[Header]]
) -> None:
    try:
        previous = read_dead_letter(*message)
    except OtherVersionError:
        return
    if previous is None:
        return
    assert 1 <= previous.attempt <= LARGEST_COUNT
    letter = LETTER.after(previous)
    assert read_dead_letter(*write(letter, dialect)) == letter
    assert read_dead_letter(b"k", b"v", [*previous.headers, *redrive_headers(letter)])


@every_dialect
def test_a_record_in_an_envelope_that_cannot_be_opened_becomes_a_letter_that_can_be_read(dialect: Dialect) -> None:
    arrived = write_envelope(LETTER, dialect)
    newer = json.dumps({**json.loads(arrived.value), "schema_version": 99}).encode()
    with pytest.raises(OtherVersionError):
        read_dead_letter(arrived.key, newer, arrived.headers)
    letter = replace(LETTER, value=newer, headers=tuple(arrived.headers))
    assert read_dead_letter(*write_raw(letter, dialect)) == letter


@every_format
def test_attempts_are_counted_to_the_largest_and_no_further(write: Write) -> None:
    headers = [
        (name, b"9" * 4_300 if name == "kpipe-dead-letter-attempt" else raw)
        for name, raw in DIALECTS["kpipe"].fault_headers(LETTER)
    ]
    previous = read_dead_letter(b"k", b"v", headers)
    assert previous
    written = write(LETTER.after(previous), DIALECTS["kpipe"])
    assert dict(written.headers)["kpipe-dead-letter-attempt"] == b"2147483647"
    assert read_dead_letter(*written) == LETTER.after(previous)


def test_the_story_of_the_first_fault_stays_short_for_any_writer() -> None:
    large = {"kpipe-source-topic": 249, "kpipe-fault-message": 900_000, "kpipe-fault-occurred-at": 900_000}
    headers = [
        (name, b"x" * large[name] if name in large else raw) for name, raw in DIALECTS["kpipe"].fault_headers(LETTER)
    ]
    previous = read_dead_letter(b"k", b"v", headers)
    assert previous
    written = write_raw(LETTER.after(previous), DIALECTS["kpipe"])
    assert sum(len(name) + len(raw or b"") for name, raw in written.headers) < 5_000
    again = read_dead_letter(*written)
    assert again
    assert again.first_fault == again.first


@given(headers=HEADERS)
def test_a_record_that_never_was_a_letter_has_no_fault_headers(headers: tuple[Header, ...]) -> None:
    assert not has_fault_headers(headers)
