from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message
from docs_kit import GUIDE, python_blocks

from airflow_provider_kpipe import StopPartitionError, batch_segment
from airflow_provider_kpipe.record import Origin, Record
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.batches.arrow_batch import HEADERS
from kpipe_engine.batches.stages import StageChain, has_batches
from kpipe_engine.errors import PartitionHaltedError, SegmentError
from kpipe_engine.redrive.original_record import OriginalRecord
from kpipe_engine.writing.output_rows import Row
from tests.kit.letters import LETTER

MakeMessage = Callable[..., Message]
Batch = pa.RecordBatch


@pytest.fixture
def user() -> Iterator[Any]:
    """The user's module, filled by each test."""
    module = ModuleType("user_batches")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def messages(message: MakeMessage) -> Callable[..., list[Message]]:
    """Messages of these values, from offset 10 on."""

    def make(*values: bytes | None) -> list[Message]:
        return [
            message(10 + at, value, key=b"k%d" % at, headers=[("h", b"%d" % at)]) for at, value in enumerate(values)
        ]

    return make


MakeMessages = Callable[..., list[Message]]


def chain(*names: str) -> StageChain:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    return StageChain([f"user_batches:{name}" for name in names], context, Origin("run"))


def run(segments: StageChain, given: list[Message]) -> tuple[list[Row], dict[int, SegmentError]]:
    segments.open()
    return segments.process(given)


def values(rows: list[Row]) -> list[Any]:
    return [row[2] for row in rows]


def headers(rows: list[Row]) -> list[Any]:
    return [row[0].headers() if row[3] is None else row[3] for row in rows]


def offsets(rows: list[Row]) -> list[int]:
    return [row[0].offset() for row in rows]


def with_value(batch: Batch, column: Any) -> Batch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", column)


def appending(letter: bytes) -> Any:
    """A batch segment that appends to each value, and cannot where it says so."""

    @batch_segment
    def append(batch: Batch) -> Batch:
        found = batch["value"].to_pylist()
        if any(b"bad" in value for value in found):
            raise ValueError(f"bad among {len(found)}")
        return with_value(batch, pa.array([value + letter for value in found]))

    return append


def passing(change: Callable[[Batch], Any]) -> Any:
    return batch_segment(lambda batch: change(batch))


def test_a_record_out_of_a_dead_letter_has_the_letters_coordinates(user: Any, message: MakeMessage) -> None:
    """Its own partition is where it came from once, which differs from record to record."""
    seen: list[Batch] = []
    user.look = batch_segment(lambda batch: seen.append(batch) or batch)
    letters = [message(offset, topic="orders.dead", partition=0) for offset in (7, 8)]
    run(chain("look"), [OriginalRecord(each, LETTER, home, []) for home, each in enumerate(letters, start=1)])
    (batch,) = seen
    assert batch.select(["source_topic", "source_partition", "source_offset"]).to_pylist() == [
        {"source_topic": "orders.dead", "source_partition": 0, "source_offset": offset} for offset in (7, 8)
    ]


def test_a_batch_has_the_columns_of_its_records(user: Any, message: MakeMessage) -> None:
    seen: list[Batch] = []
    user.look = batch_segment(lambda batch: seen.append(batch) or batch)
    run(chain("look"), [message(10, b"\xff", key=None, timestamp=(1, 77)), message(12, None, timestamp=(1, 78))])
    (batch,) = seen
    assert batch.to_pydict() == {
        "key": [None, b"k"],
        "value": [b"\xff", None],
        "timestamp": [77, 78],
        "topic": [None, None],
        "partition": [None, None],
        "source_topic": ["orders", "orders"],
        "source_partition": [3, 3],
        "source_offset": [10, 12],
        "source_timestamp": [77, 78],
    }
    assert [str(each.type) for each in batch.schema] == [
        *("binary", "binary", "int64", "string", "int32", "string", "int32", "int64", "int64")
    ]


def test_what_is_not_touched_is_as_it_was_read(user: Any, message: MakeMessage) -> None:
    user.same = passing(lambda batch: batch)
    strange = [("a", b"1"), ("a", None), ("b", b"\xff")]
    given = [message(10, b"\x00\xff", key=None, headers=strange), message(11, None, headers=None), message(12, b"")]
    rows, failed = run(chain("same"), given)
    assert rows == [(each, each.key(), each.value(), None, each.timestamp()[1], None, None) for each in given]
    assert headers(rows) == [strange, None, None]
    assert failed == {}


def test_columns_that_are_left_out_stay_as_they_were(user: Any, messages: MakeMessages) -> None:
    user.values = passing(lambda batch: pa.record_batch({"value": ["x", "y"]}))
    rows, _ = run(chain("values"), messages(b"a", b"b"))
    assert [(row[1], row[2]) for row in rows] == [(b"k0", "x"), (b"k1", "y")]
    assert headers(rows) == [[("h", b"0")], [("h", b"1")]]


def test_a_segment_may_choose_all_that_a_record_has(user: Any, messages: MakeMessages) -> None:
    chosen = {"key": [None], "value": [b"v"], "timestamp": [5], "topic": ["else"], "partition": [2]}
    headers = pa.array([[{"key": "n", "value": None}, {"key": "n", "value": b"\xff"}]], HEADERS)
    user.choose = passing(lambda batch: pa.record_batch({**chosen, "headers": headers}))
    ((_, *row),), _ = run(chain("choose"), messages(b"a"))
    assert row == [None, b"v", [("n", None), ("n", b"\xff")], 5, "else", 2]


def test_headers_are_shown_to_those_who_ask(user: Any, messages: MakeMessages) -> None:
    seen: list[Any] = []
    user.asks = batch_segment(headers=True)(lambda batch: seen.append(batch["headers"].to_pylist()) or batch)
    rows, _ = run(chain("asks"), messages(b"a", b"b"))
    assert seen == [[[{"key": "h", "value": b"0"}], [{"key": "h", "value": b"1"}]]]
    assert [row[3] for row in rows] == [[("h", b"0")], [("h", b"1")]]


def test_rows_that_do_not_come_back_are_filtered(user: Any, messages: MakeMessages) -> None:
    user.ends = passing(lambda batch: batch.take([0, 2]))
    rows, failed = run(chain("ends"), messages(b"a", b"b", b"c"))
    assert (values(rows), headers(rows)) == ([b"a", b"c"], [[("h", b"0")], [("h", b"2")]])
    assert failed == {}


def test_rows_may_come_back_in_any_order_and_more_than_once(user: Any, messages: MakeMessages) -> None:
    user.mixed = passing(
        lambda batch: pa.table({"source_offset": [12, 10, 12, 11, 12], "value": ["c1", "a", "c2", "b", "c3"]})
    )
    rows, _ = run(chain("mixed"), messages(b"a", b"b", b"c"))
    assert values(rows) == ["a", "b", "c1", "c2", "c3"]
    assert [row[1] for row in rows] == [b"k0", b"k1", b"k2", b"k2", b"k2"]


def test_all_rows_may_be_filtered(user: Any, messages: MakeMessages) -> None:
    user.none = passing(lambda batch: batch.slice(0, 0))
    assert run(chain("none", "none"), messages(b"a", b"b")) == ([], {})


def test_batch_segments_pass_on_what_they_like(user: Any, messages: MakeMessages) -> None:
    """Values of any type, and columns of their own: the next one does not parse again."""
    user.parse = passing(
        lambda batch: with_value(batch, batch["value"].cast("string")).append_column("n", pa.array([1, 2]))
    )
    user.use = passing(lambda batch: with_value(batch, batch["n"].cast("string").cast("binary")))
    rows, failed = run(chain("parse", "use"), messages(b"a", b"b"))
    assert failed == {}
    assert values(rows) == [b"1", b"2"]


def test_records_and_batches_mix(user: Any, messages: MakeMessages) -> None:
    def split(record: Record) -> Any:
        return [record.copy(value=part, headers=[("part", part)]) for part in record.value.split()]

    def end(record: Record) -> Record:
        record.value += b"."
        return record

    user.split, user.end, user.one, user.two = split, end, appending(b"1"), appending(b"2")
    rows, failed = run(chain("split", "one", "two", "end"), messages(b"a b", b"", b"c", b"d e f"))
    assert failed == {}
    assert values(rows) == [b"a12.", b"b12.", b"c12.", b"d12.", b"e12.", b"f12."]
    assert offsets(rows) == [10, 10, 12, 13, 13, 13]
    # Headers that no batch segment asked for are still those of each output.
    assert [row[3] for row in rows] == [[("part", letter.encode())] for letter in "abcdef"]


def test_a_source_offset_comes_once_in_each_batch(user: Any, messages: MakeMessages) -> None:
    seen: list[list[int]] = []

    def look(batch: Batch) -> Batch:
        seen.append(batch["source_offset"].to_pylist())
        return batch

    user.twice, user.look = passing(lambda batch: pa.Table.from_batches([batch, batch])), batch_segment(look)
    rows, _ = run(chain("twice", "look"), messages(b"a", b"b"))
    assert seen == [[10, 11], [10, 11]]
    assert values(rows) == [b"a", b"a", b"b", b"b"]


@pytest.mark.parametrize("poison", [(), (0,), (6,), (2, 3), (0, 1, 2, 3, 4, 5, 6)])
def test_only_the_records_that_cannot_pass_fail(user: Any, messages: MakeMessages, poison: tuple[int, ...]) -> None:
    user.one, user.two = appending(b"1"), appending(b"2")
    rows, failed = run(chain("one", "two"), messages(*(b"bad" if at in poison else b"v" for at in range(7))))
    assert offsets(rows) == [10 + at for at in range(7) if at not in poison]
    assert set(values(rows)) <= {b"v12"}
    assert set(failed) == {10 + at for at in poison}
    for error in failed.values():
        assert error.segment == "user_batches:one"
        assert repr(error.__cause__) == "ValueError('bad among 1')"


def test_a_record_that_had_become_several_fails_as_a_whole(user: Any, messages: MakeMessages) -> None:
    user.split, user.one = lambda record: [record.copy(value=each) for each in record.value.split()], appending(b"1")
    rows, failed = run(chain("split", "one", "split"), messages(b"a b", b"c bad d", b"e"))
    assert (values(rows), list(failed)) == ([b"a1", b"b1", b"e1"], [11])


def test_a_record_that_fits_no_batch_fails_alone_and_by_name(user: Any, messages: MakeMessages) -> None:
    def parse(record: Record) -> Record:
        record.value = {"parsed": True} if record.value == b"b" else record.value
        return record

    user.parse, user.one = parse, appending(b"1")
    rows, failed = run(chain("parse", "one"), messages(b"a", b"b", b"c"))
    assert values(rows) == [b"a1", b"c1"]
    assert failed[11].segment == "user_batches:one"
    assert "'dict'" in str(failed[11].__cause__)


def test_a_record_whose_text_is_none_fails_alone(user: Any, messages: MakeMessages) -> None:
    def unchecked(batch: Batch) -> Batch:
        found = batch["value"]
        return with_value(batch, pa.Array.from_buffers(pa.string(), len(found), found.buffers(), offset=found.offset))

    user.unchecked = batch_segment(unchecked)
    rows, failed = run(chain("unchecked"), messages(b"a", b"\xff", b"c"))
    assert (values(rows), list(failed)) == (["a", "c"], [11])
    assert isinstance(failed[11].__cause__, UnicodeDecodeError)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda batch: None, "gives back a pyarrow.RecordBatch, .* gave back NoneType"),
        (lambda batch: batch.drop_columns(["value"]), "gives back a column 'value'; there is only .*'source_offset'"),
        (
            lambda batch: pa.table({"source_offset": [10, 11, 99], "value": ["a", "b", "c"]}),
            "source_offset 99 came back and was not in the batch of 3 rows from 10 to 12",
        ),
        (
            lambda batch: pa.table({"source_offset": [10, 11, None], "value": ["a", "b", "c"]}),
            "source_offset None came back",
        ),
    ],
)
def test_what_no_batch_segment_does_is_a_fault_of_the_whole_batch(
    user: Any, messages: MakeMessages, change: Any, said: str
) -> None:
    calls: list[int] = []
    user.wrong = batch_segment(lambda batch: calls.append(batch.num_rows) or change(batch))
    rows, failed = run(chain("wrong"), messages(b"a", b"b", b"c"))
    assert (rows, list(failed), calls) == ([], [10, 11, 12], [3])
    for error in failed.values():
        assert re.search(said, str(error.__cause__))


def test_rows_that_nothing_identifies_fail_where_they_do_not_match(user: Any, messages: MakeMessages) -> None:
    """As with a parser that passes over an empty line: the others are matched in smaller batches."""
    user.lines = passing(lambda batch: pa.table({"value": [each for each in batch["value"].to_pylist() if each]}))
    rows, failed = run(chain("lines"), messages(b"a", b"", b"c", b"d"))
    assert (values(rows), list(failed)) == ([b"a", b"c", b"d"], [11])
    assert "1 rows went in, 0 came back, and no column 'source_offset' says which they are" in str(failed[11].__cause__)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("timestamp", pa.array([5], pa.timestamp("us"))),
        ("partition", pa.array([2**40])),
        ("headers", pa.array(["text"])),
        ("source_offset", pa.array(["text"])),
    ],
)
def test_a_column_of_the_wrong_type_is_named(user: Any, messages: MakeMessages, name: str, column: Any) -> None:
    user.wrong = passing(lambda batch: pa.table({"value": [b"v"], name: column}))
    _, failed = run(chain("wrong"), messages(b"a"))
    assert f"column '{name}' came back as {column.type} and should be " in str(failed[10].__cause__)


def test_types_that_hold_the_same_are_taken(user: Any, messages: MakeMessages) -> None:
    columns = {
        "value": pa.array(["v"], pa.large_string()),
        "timestamp": pa.array([5], pa.uint8()),
        "partition": pa.array([None], pa.null()),
        "topic": pa.array(["t"]).dictionary_encode(),
        "source_offset": pa.array([10], pa.int32()),
    }
    user.types = passing(lambda batch: pa.table(columns))
    ((_, key, value, _, timestamp, topic, partition),), _ = run(chain("types"), messages(b"a"))
    assert (key, value, timestamp, topic, partition) == (b"k0", "v", 5, "t", None)


def test_a_class_is_opened_called_and_closed(user: Any, messages: MakeMessages) -> None:
    calls: list[str] = []

    @batch_segment
    class Step:
        def open(self, context: SegmentContext) -> None:
            calls.append(f"open {context.partition}")

        def process(self, batch: Batch) -> Batch:
            calls.append(f"process {batch.num_rows}")
            return batch

        def close(self) -> None:
            calls.append("close")

    user.Step = Step
    segments = chain("Step")
    run(segments, messages(b"a", b"b"))
    run(segments, messages(b"c"))
    segments.close()
    assert calls == ["open 3", "process 2", "process 1", "close"]


def test_segments_close_in_the_reverse_order_also_if_one_did_not_open(user: Any) -> None:
    calls: list[str] = []

    class First:
        def process(self, record: Record) -> Record:
            return record

        def close(self) -> None:
            calls.append("close first")

    @batch_segment
    class Second(First):
        def open(self, context: SegmentContext) -> None:
            raise ValueError("no database")

    user.First, user.Second = First, Second
    segments = chain("First", "Second")
    with pytest.raises(PartitionHaltedError, match="'user_batches:Second' did not open: ValueError: no database"):
        segments.open()
    segments.close()
    assert calls == ["close first"]


def test_a_call_for_several_that_raised_has_counted_nothing(user: Any, messages: MakeMessages) -> None:
    @batch_segment
    class Counting:
        def open(self, context: SegmentContext) -> None:
            self.context = context

        def process(self, batch: Batch) -> Batch:
            self.context.count("rows", batch.num_rows)
            if b"bad" in batch["value"].to_pylist():
                raise ValueError("bad")
            return batch

    user.Counting = Counting
    segments, counters = chain("Counting"), {"other": 2}
    segments.count_into(counters)
    run(segments, messages(b"a", b"bad", b"c", b"d"))
    # The record that cannot pass was called for by itself in the end: a try that failed counts.
    assert counters == {"other": 2, "rows": 4}


def test_a_chain_is_known_by_its_batch_segments(user: Any) -> None:
    user.record, user.batch = (lambda record: record), appending(b"1")
    assert not has_batches([user.record])
    assert has_batches([user.record, user.batch])


def test_where_there_is_no_arrow_it_is_said_what_to_install(user: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    user.batch = appending(b"1")
    monkeypatch.setitem(sys.modules, "kpipe_engine.batches.arrow_segment", None)
    with pytest.raises(PartitionHaltedError, match=r"'user_batches:batch' takes Arrow batches, .*: install it there"):
        chain("batch").open()


def test_the_example_of_the_guide_runs(user: Any, messages: MakeMessages) -> None:
    (example,) = [each for each in python_blocks(GUIDE / "segments.md") if "@batch_segment" in each]
    exec(example, user.__dict__)  # noqa: S102  # our own documentation
    given = messages(b'{"total": 99.5}', b'{"total": 100.5}', b"\xff", b"{}", b'{"total": 1000}')
    rows, failed = run(chain("only_large"), given)
    assert (offsets(rows), list(failed)) == ([11, 14], [12])


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_what_is_down_is_asked_once_and_fails_all_behind_it(user: Any, messages: MakeMessages, kind: str) -> None:
    asked: list[Any] = []

    def ask(given: Any) -> Any:
        asked.append(given)
        if kind == "batches" or given.value == b"b":
            raise StopPartitionError("down")
        return given

    user.ask = ask if kind == "records" else passing(ask)
    user.same = passing(lambda batch: batch)
    rows, failed = run(chain("ask", "same"), messages(b"a", b"b", b"c", b"d"))
    if kind == "records":
        assert (len(asked), values(rows), sorted(failed)) == (2, [b"a"], [11, 12, 13])
    else:
        assert (len(asked), values(rows), sorted(failed)) == (1, [], [10, 11, 12, 13])
    assert {type(each.__cause__) for each in failed.values()} == {StopPartitionError}


def test_segments_that_are_awaited_cannot_stand_beside_it(user: Any) -> None:
    async def fetch(record: Record) -> Record:
        return record

    user.fetch, user.upper = fetch, batch_segment(lambda batch: batch)
    with pytest.raises(PartitionHaltedError, match=r"'user_batches:fetch', 'user_batches:upper' are in part `async"):
        chain("fetch", "upper").open()
