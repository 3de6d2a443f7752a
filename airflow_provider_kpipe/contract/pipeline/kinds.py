"""The kinds of value that the fields of a declaration take: a wrong one fails where it is written."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast, get_args, get_origin


def check_kinds(declared: Any, refusal: type[ValueError]) -> None:
    """Refuse a field that needs one of our classes, a text or a switch, and is something else.

    Numbers, words and lists are left to the checks that say which of them are allowed.
    """
    for name, kind, optional in _checked(cast("Hashable", type(declared))):
        value = getattr(declared, name, None)
        if optional and value is None:
            continue
        if isinstance(value, str) and kind is str:
            if not value.strip():
                # As an environment variable gives it that nobody has set. It would be taken for none.
                raise refusal(f"{type(declared).__name__}.{name}={value!r} is empty: use {_expected(kind, optional)}")
        elif dataclasses.is_dataclass(kind):
            if not isinstance(value, kind):
                written = f"write {name}={_made_of(kind, value)}{', or None' if optional else ''}"
                raise refusal(f"{type(declared).__name__}.{name}={value!r} is no {kind.__name__}: {written}")
        elif not isinstance(value, kind):
            raise refusal(f"{type(declared).__name__}.{name}={value!r}: use {_expected(kind, optional)}")


def listed(name: str, value: Any, kinds: str, refusal: type[ValueError]) -> tuple[Any, ...]:
    """A list as it is kept. One text is refused, as a list of its letters would not be noticed.

    :param kinds: what it is a list of, in words
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise refusal(f"{name}={value!r} must be a list of {kinds}")
    return tuple(value)


@functools.cache
def _checked(declared: Any) -> list[tuple[str, type, bool]]:
    """The fields that are checked, with the class that each takes, and whether it takes None."""
    kinds = [(name, *_kind(hint)) for name, hint in typing.get_type_hints(declared).items()]
    return [(name, kind, optional) for name, kind, optional in kinds if kind is not None]


def _expected(kind: type, optional: bool) -> str:
    return "True or False" if kind is bool else "a text" + (", or None" if optional else "")


def _kind(hint: Any) -> tuple[type | None, bool]:
    """The class that a field takes, and whether it takes None; no class where that is not for us to say."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return (_kind(kinds[0])[0] if len(kinds) == 1 else None), True
    return (hint if hint in (str, bool) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)) else None), False


def _made_of(kind: type[Any], value: Any) -> str:
    """How the value may have been meant: as the first field that takes it."""
    for field in dataclasses.fields(kind) if isinstance(value, (str, int, float)) else ():
        with suppress(TypeError, ValueError):
            kind(**{field.name: value})
            return f"{kind.__name__}({field.name}={value!r})"
    return f"{kind.__name__}(...)"
