from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.contract.progress.progress import Counts
from airflow_provider_kpipe.record import Origin, Record
from kpipe_engine.errors import ChunkFailedError, UnwritableRecordError
from kpipe_engine.writing.outputs import write_outputs


class Destination:
    """Takes all values but b"huge"."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def write(self, record: Record, message: Any) -> None:
        if record.value == b"huge":
            raise UnwritableRecordError from ValueError("too large")
        self.written.append(record.value)


class World:
    """A destination, the counts, and the message that outputs are made of."""

    def __init__(self, message: Any) -> None:
        self.message, self.counts = message, Counts()
        self.destination: Any = Destination()

    def write(self, *values: bytes, taken: int = 0) -> Any:
        records = [Record(self.message, Origin("run")).copy(value=value) for value in values]
        return write_outputs(self.destination, self.message, records, self.counts, taken)


@pytest.fixture
def world(message: Callable[..., Any]) -> World:
    return World(message(5))


def test_each_output_is_written_and_counted(world: World) -> None:
    assert world.write(b"a", b"b") is None
    assert (world.destination.written, world.counts) == ([b"a", b"b"], Counts(written=2))


def test_no_output_is_a_filtered_record(world: World) -> None:
    assert world.write() is None
    assert world.counts == Counts(filtered=1)
    assert type(world.counts.filtered) is int


def test_outputs_that_are_on_their_way_already_count(world: World) -> None:
    assert world.write(taken=3) is None
    assert world.counts == Counts(written=3)


def test_a_fault_in_the_first_output_is_returned_and_counts_nothing(world: World) -> None:
    fault = world.write(b"huge", b"a")
    assert (fault.kind, fault.message) == ("destination", "too large")
    assert (world.destination.written, world.counts) == ([], Counts())


@pytest.mark.parametrize(("values", "taken"), [((b"a", b"huge"), 0), ((b"huge",), 1)])
def test_a_fault_behind_an_output_fails_the_chunk(world: World, values: tuple[bytes, ...], taken: int) -> None:
    with pytest.raises(ChunkFailedError, match="ValueError: too large") as failure:
        world.write(*values, taken=taken)
    ((offset, fault),) = failure.value.faults.items()
    assert (offset, fault.kind) == (5, "destination")
    assert world.counts == Counts()
