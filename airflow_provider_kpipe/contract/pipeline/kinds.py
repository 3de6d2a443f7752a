"""Check of the kinds of value in the fields of a declaration: a wrong one fails where it is written."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast, get_args, get_origin


def check_kinds(declared: Any, refusal: type[ValueError]) -> None:
    """Raise `refusal` if a field that takes a class of kpipe's, a text or a boolean has another value.

    Numbers, choices and lists are left to the checks that know the allowed ones.
    """
    for name, kind, optional in _checked(cast("Hashable", type(declared))):
        value = getattr(declared, name, None)
        if optional and value is None:
            continue
        if isinstance(value, str) and kind is str:
            if not value.strip():
                # An unset environment variable may give an empty text, which would be taken for None.
                raise refusal(f"{type(declared).__name__}.{name}={value!r} is empty: use {_expected(kind, optional)}")
        elif dataclasses.is_dataclass(kind):
            if not isinstance(value, kind):
                written = f"write {name}={_made_of(kind, value)}{', or None' if optional else ''}"
                raise refusal(f"{type(declared).__name__}.{name}={value!r} is not a {kind.__name__}: {written}")
        elif not isinstance(value, kind):
            raise refusal(f"{type(declared).__name__}.{name}={value!r}: use {_expected(kind, optional)}")


def listed(name: str, value: Any, kinds: str, refusal: type[ValueError]) -> tuple[Any, ...]:
    """Return a list as a tuple. Raise `refusal` for a text, which would silently become a list of its letters.

    :param kinds: the items of the list, in words
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise refusal(f"{name}={value!r} must be a list of {kinds}")
    return tuple(value)


@functools.cache
def _checked(declared: Any) -> list[tuple[str, type, bool]]:
    """Return the fields to check, with the class that each takes, and whether it takes None."""
    kinds = [(name, *_kind(hint)) for name, hint in typing.get_type_hints(declared).items()]
    return [(name, kind, optional) for name, kind, optional in kinds if kind is not None]


def _expected(kind: type, optional: bool) -> str:
    return "True or False" if kind is bool else "a text" + (", or None" if optional else "")


def _kind(hint: Any) -> tuple[type | None, bool]:
    """Return the class that a field takes, and whether it takes None; no class for a field that others check."""
    if get_origin(hint) in (typing.Union, types.UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return (_kind(kinds[0])[0] if len(kinds) == 1 else None), True
    return (hint if hint in (str, bool) or (isinstance(hint, type) and dataclasses.is_dataclass(hint)) else None), False


def _made_of(kind: type[Any], value: Any) -> str:
    """Suggest how the value may have been meant: as the first field that takes it."""
    for field in dataclasses.fields(kind) if isinstance(value, (str, int, float)) else ():
        with suppress(TypeError, ValueError):
            kind(**{field.name: value})
            return f"{kind.__name__}({field.name}={value!r})"
    return f"{kind.__name__}(...)"
