"""Search, by halving, for the few rows of a batch that make a call fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kpipe_engine.errors import NO_RECORDS_ERRORS

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Bisected(Generic[Result]):
    """The results of the calls that succeeded, in order, and the error of each row that could not pass."""

    results: list[Result]
    errors: dict[int, BaseException]


def bisect_errors(
    count: int,
    call: Callable[[int, int], Result],
    indivisible: type[BaseException] | tuple[type[BaseException], ...] = (),
) -> Bisected[Result]:
    """Call `call(start, stop)` for the rows from 0 to `count`; if it raises, call it for each half of them.

    A row that raises by itself gets the error. An `indivisible` error is given to all rows that it was raised over.
    With k rows that cannot pass there are at most 1 + 2 k log2(count) calls, log2 rounded up; the calls that succeed
    have each other row once. A MemoryError over several rows halves them; one over a single row is raised.
    """
    results: list[Result] = []
    errors: dict[int, BaseException] = {}
    waiting = [(0, count)] if count else []
    while waiting:
        start, stop = waiting.pop()
        try:
            results.append(call(start, stop))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # user code: whatever it raises is its row's error
            is_alone = stop - start == 1
            if is_alone and isinstance(error, NO_RECORDS_ERRORS):
                raise
            if is_alone or isinstance(error, indivisible):
                errors.update(dict.fromkeys(range(start, stop), error))
            else:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
    return Bisected(results, errors)
