"""Stack traces as Python prints them, fast: a poison record is seldom the only one, and fails where others did.

Most of a trace is the same for every record that fails in one place. That part, which costs a look at source
files, is kept; what was raised is said anew each time.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import TypeAlias

_Place: TypeAlias = tuple[int, int]

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
# Python says more about these than their class and message.
_TOLD_AT_LENGTH = (SyntaxError, NameError, AttributeError, ImportError, BaseExceptionGroup)
_MOST_STACKS = 256

# The code objects are held so that no other one gets the id of one that is gone.
_stacks: dict[tuple[_Place, ...], tuple[str, tuple[CodeType, ...]]] = {}


def format_exception(error: BaseException) -> str:
    """What `traceback.format_exception` says."""
    chain = list(_chain(error))
    if any(isinstance(each, _TOLD_AT_LENGTH) or hasattr(each, "__notes__") for each, _ in chain):
        return "".join(traceback.format_exception(error))
    return "".join(_stack(each.__traceback__) + _said(each) + link for each, link in reversed(chain))


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The error and what led to it, each with the words between it and the one it led to."""
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


def _stack(trace: TracebackType | None) -> str:
    if trace is None:
        return ""
    places, codes = [], []
    step: TracebackType | None = trace
    while step is not None:
        code = step.tb_frame.f_code
        places.append((id(code), step.tb_lasti))
        codes.append(code)
        step = step.tb_next
    place = tuple(places)
    if place not in _stacks:
        if len(_stacks) >= _MOST_STACKS:
            _stacks.clear()
        lines = "".join(traceback.format_tb(trace))
        _stacks[place] = f"Traceback (most recent call last):\n{lines}", tuple(codes)
    return _stacks[place][0]


def _said(error: BaseException) -> str:
    kind = type(error)
    module = "" if kind.__module__ in ("__main__", "builtins") else f"{kind.__module__}."
    message = str(error)
    return f"{module}{kind.__qualname__}: {message}\n" if message else f"{module}{kind.__qualname__}\n"
