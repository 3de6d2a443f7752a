"""Frozen value objects to plain JSON and back, strictly.

What crosses a process border may have been written by another version or edited by hand, so a document
that does not fit is refused, with the name of the field that does not.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast, get_args, get_origin

T = TypeVar("T")
VERSION_KEY = "schema_version"


class DocumentError(ValueError):
    """A JSON document does not fit the value object that it should become."""


class Document:
    """Mixin for a dataclass that crosses a process border on its own, under a schema version."""

    SCHEMA_VERSION: ClassVar[int]
    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        return {VERSION_KEY: self.SCHEMA_VERSION, **encode(self)}

    def to_text(self) -> str:
        """On one line."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @classmethod
    def read_text(cls, text: str | None) -> Self | None:
        """None where there is nothing, or something that somebody else has written."""
        try:
            return cls.from_json(json.loads(text or ""))
        except (json.JSONDecodeError, RecursionError, DocumentError):
            return None

    @classmethod
    def from_json(cls, document: Any) -> Self:
        name, known = cls.__name__, cls.SCHEMA_VERSION
        if not isinstance(document, Mapping):
            raise DocumentError(f"{name}: a JSON object is needed, not {_shown(document)}")
        found = document.get(VERSION_KEY)
        if type(found) is not int or found != known:
            raise DocumentError(
                f"{name}.{VERSION_KEY} is {found!r}, and this version of kpipe reads {known}: "
                "make the document again with the version that is installed now"
            )
        return decode(cls, {k: v for k, v in document.items() if k != VERSION_KEY}, name)


def encode(value: Any) -> Any:
    """Plain JSON types only; a mapping's keys become strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], document: Any, where: str) -> T:
    """Build `kind`, a dataclass, from a JSON object that has exactly its fields."""
    if not isinstance(document, Mapping):
        raise DocumentError(f"{where}: a JSON object is needed, not {_shown(document)}")
    hints = _hints(cast("Hashable", kind))
    missing = [name for name in hints if name not in document]
    extra = [str(name) for name in document if name not in hints]
    if missing or extra:
        said = [f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("does not know", extra)) if names]
        raise DocumentError(f"{where} {' and '.join(said)}")
    values = {name: _decode_value(hint, document[name], f"{where}.{name}") for name, hint in hints.items()}
    try:
        return kind(**values)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"{where}: {error}") from error


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _decode_value(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_optional(hint, value, where)
    if origin is typing.Literal:
        if value in get_args(hint):
            return value
        raise DocumentError(f"{where} is {_shown(value)}; it must be one of {', '.join(map(repr, get_args(hint)))}")
    if isinstance(origin, type) and issubclass(origin, Sequence):
        if not isinstance(value, list):
            raise DocumentError(f"{where}: a list is needed, not {_shown(value)}")
        return tuple(_decode_value(get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _decode_mapping(hint, value, where)
    if dataclasses.is_dataclass(hint):
        return decode(cast("type[Any]", hint), value, where)
    # bool is an int to Python, and no number in our documents is meant by `true`.
    if type(value) is hint or (hint is float and type(value) is int):
        return value
    raise DocumentError(f"{where}: {hint.__name__} is needed, not {_shown(value)}")


def _decode_optional(hint: Any, value: Any, where: str) -> Any:
    present = [kind for kind in get_args(hint) if kind is not type(None)]
    if value is None and len(present) < len(get_args(hint)):
        return None
    if len(present) != 1:
        raise TypeError(f"{where}: a contract field is one type or None, not {hint}")
    return _decode_value(present[0], value, where)


def _decode_mapping(hint: Any, value: Any, where: str) -> dict[Any, Any]:
    key_kind, item_kind = get_args(hint)
    if not isinstance(value, Mapping):
        raise DocumentError(f"{where}: a JSON object is needed, not {_shown(value)}")
    decoded = {}
    for key, item in value.items():
        try:
            name = key_kind(key)
        except ValueError:
            raise DocumentError(f"{where}: the key {key!r} is not {key_kind.__name__}") from None
        decoded[name] = _decode_value(item_kind, item, f"{where}[{key!r}]")
    return decoded


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
