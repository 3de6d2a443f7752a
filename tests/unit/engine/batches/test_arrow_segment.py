from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest
from docs_kit import GUIDE, python_blocks

from airflow_provider_kpipe import batch_segment
from airflow_provider_kpipe.record import Record
from airflow_provider_kpipe.segments import BatchOptions, SegmentContext
from kpipe_engine.batches import arrow_batch
from kpipe_engine.batches.arrow_segment import BatchStage
from tests.kit.batches import Batch, MakeMessages, appending, chain, offsets, passing, run, values, with_value


def test_batch_segments_pass_on_what_they_like(user: Any, messages: MakeMessages) -> None:
    """Values of any type, and columns of their own: the next one does not parse again."""
    user.parse = passing(
        lambda batch: with_value(batch, batch["value"].cast("string")).append_column("n", pa.array([1, 2]))
    )
    user.use = passing(lambda batch: with_value(batch, batch["n"].cast("string").cast("binary")))
    rows, failed = run(chain("parse", "use"), messages(b"a", b"b"))
    assert failed == {}
    assert values(rows) == [b"1", b"2"]


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


def test_the_example_of_the_guide_runs(user: Any, messages: MakeMessages) -> None:
    (example,) = [each for each in python_blocks(GUIDE / "segments.md") if "@batch_segment" in each]
    exec(example, user.__dict__)  # noqa: S102  # our own documentation
    given = messages(b'{"total": 99.5}', b'{"total": 100.5}', b"\xff", b"{}", b'{"total": 1000}')
    rows, failed = run(chain("only_large"), given)
    assert (offsets(rows), list(failed)) == ([11, 14], [12])


@pytest.mark.parametrize(("gives_rows", "kind"), [(True, list), (False, arrow_batch.Batch)])
def test_only_the_last_of_several_batch_segments_gives_rows(
    messages: MakeMessages, gives_rows: bool, kind: type[object]
) -> None:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    stage = BatchStage("user_batches:same", lambda batch: batch, BatchOptions(headers=False), context, gives_rows)
    (given,) = stage.process(stage.begin(messages(b"a", b"b")), {})
    assert isinstance(given, kind)
    assert len(given) == 2
