from __future__ import annotations

import sys
from typing import Any

import pytest

from airflow_provider_kpipe import StopPartitionError, batch_segment
from airflow_provider_kpipe.record import Record
from airflow_provider_kpipe.segments import SegmentContext
from kpipe_engine.batches.stages import has_batches
from kpipe_engine.errors import PartitionHaltedError
from tests.kit.batches import Batch, MakeMessages, appending, chain, offsets, passing, run, values


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


def test_a_chain_is_known_by_its_batch_segments(user: Any) -> None:
    user.record, user.batch = (lambda record: record), appending(b"1")
    assert not has_batches([user.record])
    assert has_batches([user.record, user.batch])


def test_the_error_names_the_package_if_arrow_is_missing(user: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    user.batch = appending(b"1")
    monkeypatch.setitem(sys.modules, "kpipe_engine.batches.arrow_segment", None)
    with pytest.raises(PartitionHaltedError, match=r"'user_batches:batch' takes Arrow batches, .*: install it there"):
        chain("batch").open()


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_a_dependency_that_is_down_is_asked_once_and_fails_all_behind_it(
    user: Any, messages: MakeMessages, kind: str
) -> None:
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
