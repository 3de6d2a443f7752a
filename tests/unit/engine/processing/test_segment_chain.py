from __future__ import annotations

import logging
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from fateful_kit import UnspeakableError

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record, SourceMessage
from airflow_provider_kpipe.segments import SegmentContext
from airflow_provider_kpipe.testing import context_of
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import PartitionHaltedError, SegmentError
from kpipe_engine.faults.time_limit import NO_LIMIT, Limit, TimeLimit
from kpipe_engine.processing.segment_chain import SegmentChain

MakeMessage = Callable[..., SourceMessage]


class User(ModuleType):
    """The user's module, filled by each test; `calls` is what its segments did."""

    calls: list[str]


@pytest.fixture
def user() -> Iterator[User]:
    module = User("user_segments")
    module.calls = []
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def record(message: MakeMessage) -> Record:
    return Record(message(5, b"v"), Origin("run"))


def chain(*names: str, limit: Limit = NO_LIMIT) -> SegmentChain:
    context = SegmentContext("run", "orders", 3, logging.getLogger("kpipe.segments"))
    return SegmentChain([f"user_segments:{name}" for name in names], context, limit)


def opened(*names: str) -> SegmentChain:
    segments = chain(*names)
    segments.open()
    return segments


def values(records: Any) -> list[Any]:
    return [record.value for record in records]


def appending(letter: bytes) -> Callable[[Record], Record]:
    def append(record: Record) -> Record:
        record.value += letter
        return record

    return append


def step(user: Any, name: str, **methods: Any) -> None:
    """Put a segment class into the user's module that notes its calls."""

    class Step:
        def open(self, context: SegmentContext) -> None:
            user.calls.append(f"open {name}")

        def process(self, record: Record) -> Record:
            return record

        def close(self) -> None:
            user.calls.append(f"close {name}")

    setattr(user, name, type(name, (Step,), methods))


def test_no_segment_gives_the_record_back(record: Record) -> None:
    assert opened().process(record) == (record,)


def test_segments_run_in_their_order(user: Any, record: Record) -> None:
    user.one, user.two, user.three = appending(b"1"), appending(b"2"), appending(b"3")
    assert values(opened("one", "two", "three").process(record)) == [b"v123"]


def test_a_segment_may_be_inside_a_class(user: Any, record: Record) -> None:
    user.Holder = type("Holder", (), {"inner": staticmethod(appending(b"!"))})
    assert values(opened("Holder.inner").process(record)) == [b"v!"]


def test_a_class_is_opened_once_with_what_it_may_want_to_know(user: Any, record: Record) -> None:
    seen: list[SegmentContext] = []
    step(user, "Step", open=lambda self, context: seen.append(context))
    segments = opened("Step")
    segments.open()
    segments.process(record)
    (context,) = seen
    assert (context.run_key, context.topic, context.partition) == ("run", "orders", 3)
    assert context.logger.name == "kpipe.segments"


def test_a_class_needs_neither_open_nor_close(user: Any, record: Record) -> None:
    user.Bare = type("Bare", (), {"process": lambda self, record: record})
    segments = opened("Bare")
    assert segments.process(record) == (record,)
    segments.close()


def test_a_class_keeps_its_state_from_record_to_record(user: Any, message: MakeMessage) -> None:
    class Counting:
        def __init__(self) -> None:
            self.seen = 0

        def process(self, record: Record) -> Record:
            self.seen += 1
            return record.copy(value=self.seen)

    user.Counting = Counting
    segments = opened("Counting")
    assert [values(segments.process(Record(message(each), Origin("run")))) for each in range(3)] == [[1], [2], [3]]


def test_nothing_is_imported_before_there_is_a_record(user: Any) -> None:
    chain("missing").close()
    assert user.calls == []


def test_a_filtered_record_reaches_no_further_segment(user: Any, record: Record) -> None:
    user.drop = lambda record: None
    user.after = lambda record: user.calls.append("after")
    assert list(opened("drop", "after").process(record)) == []
    assert user.calls == []


SEVERAL: list[tuple[str, Callable[[list[Record]], Any]]] = [
    ("list", list),
    ("tuple", tuple),
    ("generator", lambda records: (each for each in records)),
    ("iterator", iter),
]


@pytest.mark.parametrize("wrap", [wrap for _, wrap in SEVERAL], ids=[name for name, _ in SEVERAL])
def test_one_record_may_become_several_that_each_go_on(user: Any, record: Record, wrap: Callable[..., Any]) -> None:
    user.split = lambda record: wrap([record.copy(value=b"a"), record.copy(value=b"b")])
    user.drop_a = lambda record: None if record.value == b"a!" else [record, record.copy(value=b"c")]
    user.mark = appending(b"!")
    assert values(opened("split", "mark", "drop_a", "mark").process(record)) == [b"b!!", b"c!"]


def test_an_empty_list_is_a_filtered_record(user: Any, record: Record) -> None:
    user.none_of_them = lambda record: []
    assert list(opened("none_of_them").process(record)) == []


def test_a_subclass_of_record_is_a_record(user: Any, record: Record, message: MakeMessage) -> None:
    class Special(Record):
        pass

    user.special = lambda record: Special(message(5, b"s"), Origin("run"))
    user.mark = appending(b"!")
    assert values(opened("special", "mark").process(record)) == [b"s!"]


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        ({"a": 1}, "dict"),
        ("text", "str"),
        (b"bytes", "bytes"),
        (5, "int"),
        (True, "bool"),
        (["text"], "str"),
        ([None], "NoneType"),
    ],
    ids=repr,
)
def test_a_value_that_is_not_a_record_is_a_fault_of_its_segment(
    user: Any, record: Record, returned: Any, kind: str
) -> None:
    user.fine = lambda record: record
    user.wrong = lambda record: returned
    with pytest.raises(SegmentError) as fault:
        opened("fine", "wrong").process(record)
    assert fault.value.segment == "user_segments:wrong"
    assert isinstance(fault.value.__cause__, TypeError)
    assert f"this one returned {kind}" in str(fault.value.__cause__)


def fail(record: Record) -> Record:
    raise ValueError("no amount")


def fail_while_given_out(record: Record) -> Iterator[Record]:
    yield record
    raise ValueError("no amount")


@pytest.mark.parametrize("failing", [fail, fail_while_given_out], ids=["at once", "while its records are taken"])
@pytest.mark.parametrize("names", [("bad",), ("fine", "bad"), ("bad", "fine"), ("split", "fine", "bad", "split")])
def test_the_segment_that_raises_is_named(
    user: Any, record: Record, failing: Callable[..., Any], names: tuple[str, ...]
) -> None:
    user.fine = lambda record: record
    user.split = lambda record: [record, record.copy()]
    user.bad = failing
    with pytest.raises(SegmentError) as fault:
        opened(*names).process(record)
    assert fault.value.segment == "user_segments:bad"
    assert isinstance(fault.value.__cause__, ValueError)


class PanicError(BaseException):
    """As some libraries have, beside Exception."""


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [(PanicError, SegmentError), (KeyboardInterrupt, KeyboardInterrupt), (MemoryError, MemoryError)],
)
def test_one_record_does_not_end_the_process_and_who_interrupts_or_has_no_memory_left_does(
    user: Any, record: Record, raised: type[BaseException], becomes: type[BaseException]
) -> None:
    def bad(record: Record) -> None:
        raise raised

    user.bad = bad
    with pytest.raises(becomes):
        opened("bad").process(record)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("not_there:parse", "ModuleNotFoundError: No module named 'not_there'"),
        ("user_segments:missing", "AttributeError"),
        ("user_segments:Step.missing", "AttributeError"),
    ],
)
def test_a_segment_that_cannot_be_imported_stops_the_partition_and_is_named(user: Any, path: str, said: str) -> None:
    step(user, "Step")
    segments = SegmentChain([path], SegmentContext("run", "orders", 3, logging.getLogger()))
    with pytest.raises(PartitionHaltedError) as stop:
        segments.open()
    assert f"segment {path!r} cannot be imported on the executor ({said}" in str(stop.value)
    assert "py_files" in str(stop.value)
    assert stop.value.next_offset is None


def test_a_module_that_raises_stops_the_partition_and_its_error_is_shown(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raising_segments.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    segments = SegmentChain(["raising_segments:parse"], SegmentContext("run", "orders", 3, logging.getLogger()))
    with pytest.raises(PartitionHaltedError, match=r"'raising_segments:parse' .*RuntimeError: no licence"):
        segments.open()


def test_an_object_that_is_not_a_segment_stops_the_partition(user: Any) -> None:
    user.number = 5
    user.Empty = type("Empty", (), {})
    with pytest.raises(PartitionHaltedError, match="'user_segments:number' is a int, not a function or a class"):
        chain("number").open()
    with pytest.raises(PartitionHaltedError, match=r"'user_segments:Empty' has no method process\(record\)"):
        chain("Empty").open()


def broken(*_: Any) -> None:
    raise OSError("no such host")


def unspeakable(*_: Any) -> None:
    raise UnspeakableError


def test_no_error_of_open_and_close_ends_the_worker(user: Any, caplog: pytest.LogCaptureFixture) -> None:
    step(user, "One", close=unspeakable)
    step(user, "Two", open=unspeakable)
    segments = chain("One", "Two")
    with pytest.raises(PartitionHaltedError, match=r"did not open: UnspeakableError: Uns"):
        segments.open()
    segments.close()
    assert [each.getMessage() for each in caplog.records] == ["segment 'user_segments:One' did not close"]


def test_segments_are_closed_in_reverse_order(user: Any) -> None:
    step(user, "One")
    step(user, "Two")
    segments = opened("One", "Two")
    segments.close()
    assert user.calls == ["open One", "open Two", "close Two", "close One"]


def test_segments_that_were_not_opened_are_not_closed(user: Any) -> None:
    step(user, "One")
    chain("One").close()
    assert user.calls == []


def test_a_segment_that_fails_to_close_is_logged_and_the_others_are_closed(
    user: Any, caplog: pytest.LogCaptureFixture
) -> None:
    step(user, "One")
    step(user, "NoClose", close=broken)
    step(user, "Two")
    opened("One", "NoClose", "Two").close()
    assert user.calls[-2:] == ["close Two", "close One"]
    (said,) = caplog.records
    assert said.getMessage() == "segment 'user_segments:NoClose' did not close"
    assert said.exc_info is not None
    assert isinstance(said.exc_info[1], OSError)


def hangs(*_: Any) -> None:
    time.sleep(600)


def test_a_segment_that_does_not_open_or_close_in_its_time_is_named_and_the_others_are_closed(
    user: Any, caplog: pytest.LogCaptureFixture
) -> None:
    step(user, "One")
    step(user, "NoClose", close=hangs)
    step(user, "NoOpen", open=hangs)
    segments = chain("One", "NoClose", "NoOpen", limit=TimeLimit(0.01, 0.5, WorkerPosition()))
    with pytest.raises(PartitionHaltedError) as stop:
        segments.open()
    assert str(stop.value).startswith(
        "segment 'user_segments:NoOpen' did not open: SegmentTimeoutError: no answer within 0.5 s, in open()"
    )
    segments.close()
    assert user.calls == ["open One", "open NoClose", "close One"]
    assert caplog.records[-1].getMessage() == "segment 'user_segments:NoClose' did not close"


def test_a_module_whose_import_takes_too_long_stops_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pkgutil, "resolve_name", hangs)
    with pytest.raises(PartitionHaltedError, match=r"cannot be imported on the executor .*no answer within 0\.5 s"):
        chain("One", limit=TimeLimit(0.01, 0.5, WorkerPosition())).open()


def test_a_segment_that_fails_to_open_stops_the_partition_and_the_others_are_closed(user: Any) -> None:
    step(user, "One")
    step(user, "NoOpen", open=broken)
    step(user, "Two")
    segments = chain("One", "NoOpen", "Two")
    with pytest.raises(PartitionHaltedError, match="'user_segments:NoOpen' did not open: OSError: no such host"):
        segments.open()
    segments.close()
    assert user.calls == ["open One", "close One"]


def test_an_object_of_the_module_that_was_not_opened_here_is_not_closed_here(user: Any) -> None:
    step(user, "Client")
    user.client = user.Client()
    segments = opened("client.process")
    segments.close()
    assert user.calls == []


def test_a_failed_chunk_takes_its_counts_with_it() -> None:
    context = context_of()
    chain = SegmentChain([], context)
    stored = Counts(named={"refunds": 2})
    failed, redone = stored.copy(), stored.copy()
    chain.count_into(failed.named)
    context.count("refunds")
    chain.count_into(redone.named)
    context.count("refunds", 5)
    assert (stored.named, failed.named, redone.named) == ({"refunds": 2}, {"refunds": 3}, {"refunds": 7})
