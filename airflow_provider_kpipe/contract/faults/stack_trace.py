"""Stack traces as Python prints them, made fast: a poison record is seldom alone, and fails where others did.

Most of a trace is the same for every record that fails in one place. That part, which costs a look at source
files, is cached; the exception itself is formatted each time.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, TracebackType

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
# Python prints more about these than their class and message.
_TOLD_AT_LENGTH = (SyntaxError, NameError, AttributeError, ImportError, BaseExceptionGroup)
_MOST_STACKS = 256

# Keyed by the ids of code objects and the instructions in them. The code objects are kept alive: otherwise a new one
# could get the id of an old one.
_stacks: dict[tuple[int, ...], tuple[str, list[CodeType]]] = {}


def format_exception(error: BaseException) -> str:
    """Return the text of `traceback.format_exception`."""
    if error.__cause__ is None and (error.__suppress_context__ or error.__context__ is None):
        # The usual error, with no cause or context to print.
        return "".join(traceback.format_exception(error)) if _is_long(error) else _told(error)
    chain = list(_chain(error))
    if any(_is_long(each) for each, _ in chain):
        return "".join(traceback.format_exception(error))
    return "".join(_told(each) + link for each, link in reversed(chain))


def class_name(error: BaseException) -> str:
    """Return the name of the error's class, with the module unless it is one of Python's own."""
    return _named(type(error))  # type: ignore[arg-type]  # a class has its own __hash__, and mypy sees that of errors


@lru_cache(maxsize=_MOST_STACKS)
def _named(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _is_long(error: BaseException) -> bool:
    return isinstance(error, _TOLD_AT_LENGTH) or hasattr(error, "__notes__")


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the error and those that led to it, each with the words that link it to the one it led to."""
    seen: set[int] = set()
    link, current = "", error
    while True:
        seen.add(id(current))
        yield current, link
        if current.__cause__ is not None:
            link, earlier = _CAUSE, current.__cause__
        elif current.__context__ is not None and not current.__suppress_context__:
            link, earlier = _CONTEXT, current.__context__
        else:
            return
        if id(earlier) in seen:
            return
        current = earlier


def _told(error: BaseException) -> str:
    message = str(error)
    name = class_name(error).removeprefix("__main__.")
    return f"{_stack(error.__traceback__)}{name}: {message}\n" if message else f"{_stack(error.__traceback__)}{name}\n"


def _stack(trace: TracebackType | None) -> str:
    if trace is None:
        return ""
    place: list[int] = []
    step: TracebackType | None = trace
    while step is not None:
        place += id(step.tb_frame.f_code), step.tb_lasti
        step = step.tb_next
    known = _stacks.get(tuple(place))
    if known is None:
        if len(_stacks) >= _MOST_STACKS:
            _stacks.clear()
        lines = "".join(traceback.format_tb(trace))
        codes = [frame.f_code for frame, _ in traceback.walk_tb(trace)]
        known = _stacks[tuple(place)] = f"Traceback (most recent call last):\n{lines}", codes
    return known[0]
