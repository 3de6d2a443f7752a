from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from airflow_provider_kpipe.contract.faults.stack_trace import format_exception

NOTHING: Any = {}


class StrangeError(Exception):
    pass


def fail(message: object = "broken") -> None:
    raise ValueError(message)


def cause() -> None:
    try:
        fail()
    except ValueError as error:
        raise StrangeError from error


def context() -> None:
    try:
        fail()
    except ValueError:
        fail("again")


def suppressed() -> None:
    try:
        fail()
    except ValueError:
        raise StrangeError("alone") from None


def noted() -> None:
    error = ValueError("noted")
    error.add_note("look here")
    raise error


def grouped() -> None:
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


def circle() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first


def recursion(depth: int = 20) -> None:
    recursion(depth - 1) if depth else fail()


def raised(by: Callable[[], None]) -> BaseException:
    try:
        by()
    except BaseException as error:  # noqa: BLE001  # whatever it is
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    "by",
    [
        fail,
        cause,
        context,
        suppressed,
        noted,
        grouped,
        circle,
        recursion,
        lambda: fail(""),
        lambda: fail("two\nlines"),
        lambda: compile("1 +", "x", "exec"),
        lambda: NOTHING["key"],
        lambda: no_such_name,  # type: ignore[name-defined]  # noqa: F821  # that is what it is for
        lambda: NOTHING.no_such_attribute,
    ],
)
def test_it_says_what_python_says_each_time(by: Callable[[], None]) -> None:
    for _ in range(2):
        error = raised(by)
        assert format_exception(error) == "".join(traceback.format_exception(error))


def test_an_error_that_was_never_raised_has_no_stack() -> None:
    assert format_exception(ValueError("never")) == "ValueError: never\n"


def test_one_place_may_say_many_things() -> None:
    said = [format_exception(raised(partial(fail, number))) for number in range(3)]
    assert [trace.splitlines()[-1] for trace in said] == ["ValueError: 0", "ValueError: 1", "ValueError: 2"]


def test_many_places_are_all_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_kpipe.contract.faults.stack_trace._MOST_STACKS", 3)
    for depth in range(10):
        error = raised(partial(recursion, depth))
        assert format_exception(error) == "".join(traceback.format_exception(error))
