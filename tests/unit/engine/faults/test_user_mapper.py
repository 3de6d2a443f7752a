from __future__ import annotations

import time
from typing import Any

import pytest
from fateful_kit import UnspeakableError

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import redrive_headers
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from kpipe_engine.assignment.worker_position import WorkerPosition
from kpipe_engine.errors import PartitionHaltedError
from kpipe_engine.faults.time_limit import TimeLimit
from kpipe_engine.faults.user_mapper import Mapper
from tests.kit.letters import LETTER


def upper(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, f"{letter.source.topic}: {letter.fault.message}".upper(), [*letter.headers, ("why", b"mine")]


def bare(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return None, None, None


def wrong_value(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, {"not": "bytes"}, []


def wrong_header(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, b"", [("a", 1)]


def wrong_name(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, b"", [(b"a", b"1")]


def cut_name(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, b"", [("a\0b", b"1")]


def names_only(letter: DeadLetter) -> tuple[Any, Any, Any]:
    return letter.key, b"", {"abc": b"1"}


def nothing(letter: DeadLetter) -> None:
    return None


def raises(letter: DeadLetter) -> None:
    raise KeyError("customer")


def leaves(letter: DeadLetter) -> None:
    raise SystemExit("bye")


def ends(letter: DeadLetter) -> None:
    raise UnspeakableError


def test_it_decides_and_what_a_redrive_needs_is_added() -> None:
    written = Mapper(f"{__name__}:upper")(LETTER)
    assert (written.key, written.value) == (b"k", "ORDERS: NO AMOUNT")
    assert written.headers == [*LETTER.headers, ("why", b"mine"), *redrive_headers(LETTER)]


def test_it_may_leave_everything_out() -> None:
    written = Mapper(f"{__name__}:bare")(LETTER)
    assert written == (None, None, redrive_headers(LETTER))


def test_a_mapped_message_is_known_as_a_dead_letter() -> None:
    written = Mapper(f"{__name__}:bare")(LETTER)
    letter = read_dead_letter(*written)
    assert letter
    assert (letter.source.topic, letter.source.offset, letter.attempt) == ("orders", 5, 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong_value", "the value that it returned is dict"),
        ("wrong_header", "the header 'a' that it returned is int"),
        ("wrong_name", "TypeError: a header is named by a bytes"),
        ("cut_name", "ValueError: the header name 'a\\x00b' holds NUL"),
        ("names_only", "ValueError"),
        ("nothing", "TypeError"),
        ("raises", "KeyError: 'customer'"),
        ("leaves", "SystemExit: bye"),
        ("ends", "UnspeakableError: UnspeakableError, which cannot say its message"),
        ("not_there", "AttributeError"),
    ],
)
def test_a_mapper_that_fails_stops_the_partition_in_front_of_the_record(name: str, said: str) -> None:
    path = f"{__name__}:{name}"
    with pytest.raises(PartitionHaltedError) as stop:
        Mapper(path)(LETTER)
    assert stop.value.next_offset == 5
    assert str(stop.value).startswith(f"offset 5: the dead letter mapper {path!r} made nothing of the record")
    assert said in str(stop.value)


def never(letter: DeadLetter) -> None:
    time.sleep(600)


def test_a_mapper_that_hangs_stops_the_partition_within_the_limit_of_a_record() -> None:
    mapper = Mapper(f"{__name__}:never", TimeLimit(0.05, 60, WorkerPosition()))
    for _ in range(2):
        with pytest.raises(PartitionHaltedError, match=r"offset 5: .*no answer within segment_timeout, 0\.05 s"):
            mapper(LETTER)


def test_a_mapper_whose_import_hangs_stops_the_partition_too() -> None:
    mapper = Mapper("never_kit:never", TimeLimit(0.05, 0.1, WorkerPosition()))
    said = r"offset 5: .*within 0\.1 s, in the import of the dead letter mapper 'never_kit:never'"
    with pytest.raises(PartitionHaltedError, match=said) as stop:
        mapper(LETTER)
    assert stop.value.next_offset == LETTER.source.offset


def test_a_mapper_that_cannot_be_imported_is_missed_with_the_first_dead_letter_only() -> None:
    mapper = Mapper("no_such_module:shape")
    with pytest.raises(PartitionHaltedError, match=r"No module named 'no_such_module'.*py_files"):
        mapper(LETTER)
