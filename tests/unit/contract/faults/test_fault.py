from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.faults.fault import MESSAGE_CHARACTERS, STACKTRACE_CHARACTERS, FailedTry, Fault


class OwnError(Exception):
    pass


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class LeavingError(BaseException):
    def __str__(self) -> str:
        raise SystemExit("bye")


def fault_of(error: BaseException, *retries: FailedTry) -> Fault:
    with pytest.raises(type(error)) as caught:
        raise error
    return Fault.of(caught.value, "orders_pipeline:parse", "segment", retries)


def test_a_fault_says_where_a_record_stopped_and_why() -> None:
    retries = (FailedTry(1, "ValueError", "no", 0.1), FailedTry(2, "ValueError", "still no", 0.2))
    fault = fault_of(ValueError("no amount"), *retries)
    assert fault.retries == retries
    assert (fault.component, fault.kind, fault.attempts) == ("orders_pipeline:parse", "segment", 3)
    assert (fault.exception_class, fault.message) == ("ValueError", "no amount")
    assert "in fault_of" in fault.stacktrace
    assert fault.stacktrace.rstrip().endswith("ValueError: no amount")
    assert str(fault) == "segment orders_pipeline:parse: ValueError: no amount"


def test_an_exception_class_is_named_with_its_module() -> None:
    assert fault_of(OwnError()).exception_class == f"{__name__}.OwnError"


def test_a_fault_knows_its_moment_in_utc() -> None:
    assert datetime.fromisoformat(fault_of(OwnError()).occurred_at).utcoffset() == timedelta(0)


def test_the_cause_of_an_error_is_in_the_stacktrace() -> None:
    error = OwnError("outer")
    error.__cause__ = ValueError("inner")
    assert "ValueError: inner" in fault_of(error).stacktrace


def test_an_error_that_cannot_say_its_message_is_a_fault_all_the_same() -> None:
    assert fault_of(MuteError()).exception_class.endswith("MuteError")
    assert fault_of(LeavingError()).message == "LeavingError, which cannot say its message: SystemExit"


@given(message=st.text(min_size=900, max_size=3_000))
@settings(deadline=None, max_examples=50)
def test_a_long_message_is_cut_from_the_end(message: str) -> None:
    fault = fault_of(OwnError(message))
    assert fault.message == message[:MESSAGE_CHARACTERS]
    assert len(fault.stacktrace) <= STACKTRACE_CHARACTERS


def test_a_long_stacktrace_keeps_its_end_where_the_error_is() -> None:
    def sink(depth: int) -> None:
        if not depth:
            raise OwnError("at the bottom")
        sink_too(depth - 1)

    def sink_too(depth: int) -> None:
        sink(depth)

    try:
        sink(150)
    except OwnError as error:
        fault = Fault.of(error, "a:b", "segment")
    assert len(fault.stacktrace) == STACKTRACE_CHARACTERS
    assert fault.stacktrace.rstrip().endswith("at the bottom")
