from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_kpipe import batch_segment
from kpipe_engine.batches.arrow_batch import HEADERS
from kpipe_engine.redrive.original_record import OriginalRecord
from tests.kit.batches import Batch, MakeMessage, MakeMessages, chain, headers, noting, passing, run, values
from tests.kit.letters import LETTER


def test_a_record_out_of_a_dead_letter_has_the_letters_coordinates(user: Any, message: MakeMessage) -> None:
    """Its own partition is where it came from once, which differs from record to record."""
    seen: list[Batch] = []
    user.look = noting(seen)
    letters = [message(offset, topic="orders.dead", partition=0) for offset in (7, 8)]
    run(chain("look"), [OriginalRecord(each, LETTER, home, []) for home, each in enumerate(letters, start=1)])
    (batch,) = seen
    assert batch.select(["source_topic", "source_partition", "source_offset"]).to_pylist() == [
        {"source_topic": "orders.dead", "source_partition": 0, "source_offset": offset} for offset in (7, 8)
    ]


def test_a_batch_has_the_columns_of_its_records(user: Any, message: MakeMessage) -> None:
    seen: list[Batch] = []
    user.look = noting(seen)
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


def test_an_untouched_column_stays_as_it_was_read(user: Any, message: MakeMessage) -> None:
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

    @batch_segment(headers=True)
    def asks(batch: Batch) -> Batch:
        seen.append(batch["headers"].to_pylist())
        return batch

    user.asks = asks
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
def test_a_wrong_return_value_is_a_fault_of_the_whole_batch(
    user: Any, messages: MakeMessages, change: Any, said: str
) -> None:
    calls: list[int] = []

    @batch_segment
    def wrong(batch: Batch) -> Any:
        calls.append(batch.num_rows)
        return change(batch)

    user.wrong = wrong
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
