"""Conversion of frozen value objects to plain JSON and back.

An older or newer version, another program or a person may have written a document that crosses a process border.
docs/architecture.md, "How documents change", has the rules.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast, get_args, get_origin

import airflow_provider_kpipe

T = TypeVar("T")
MARK_KEY = "kpipe"
"""Holds the kind of a document and the version of kpipe that wrote it: only kpipe's documents have this key."""
VERSION_KEY = "schema_version"
_PLAIN = frozenset({str, int, float, bool, type(None)})


class DocumentError(ValueError):
    """Failure of a JSON document to fit the value object that it should become."""


class OtherVersionError(DocumentError):
    """Failure of a document to fit, because another version of kpipe wrote it; that version can read it."""


class Document:
    """Mixin for a dataclass that crosses a process border on its own, under a mark and a schema version."""

    SCHEMA_VERSION: ClassVar[int]
    __slots__ = ()

    @classmethod
    def head(cls) -> dict[str, Any]:
        """Return the mark and the schema version, which come first."""
        mark = f"{cls.__name__} {airflow_provider_kpipe.__version__}"
        return {MARK_KEY: mark, VERSION_KEY: cls.SCHEMA_VERSION}

    def to_json(self) -> dict[str, Any]:
        return {**self.head(), **encode(self)}

    def to_text(self) -> str:
        """Return the document as JSON on one line."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @classmethod
    def read_text(cls, text: str | None, where: str = "") -> Self | None:
        """Return the document, or None if kpipe did not write the text; raise DocumentError if it is unreadable.

        :param where: the place that the error names
        """
        try:
            return cls.read_json(json.loads(text or ""), where)
        except DocumentError:
            raise
        except (ValueError, RecursionError) as error:
            if text is not None and text.startswith(f'{{"{MARK_KEY}"'):
                raise DocumentError(f"{_at(where)}{cls.__name__}: the text is damaged: {error}") from error
            return None

    @classmethod
    def read_json(cls, document: Any, where: str = "") -> Self | None:
        """Do as `read_text`, for JSON that is parsed already."""
        if not isinstance(document, Mapping) or not (MARK_KEY in document or VERSION_KEY in document):
            return None
        try:
            return cls.from_json(document)
        except DocumentError as error:
            raise type(error)(f"{_at(where)}{error}") from error

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Return the document, or raise DocumentError: for a place where only this kind of document belongs."""
        name = cls.__name__
        if not isinstance(document, Mapping):
            raise DocumentError(f"{name}: a JSON object is needed, not {_shown(document)}")
        kind, writer = _mark_of(document, name)
        if kind != name:
            raise DocumentError(f"{name}: this is a {kind}{_by(writer)}, which belongs somewhere else")
        _check_version(document.get(VERSION_KEY), cls.SCHEMA_VERSION, name, writer)
        try:
            return decode(cls, document, name)
        except DocumentError as error:
            if writer in (None, airflow_provider_kpipe.__version__):
                raise
            raise OtherVersionError(
                f"{error}{_by(writer)}, and this is kpipe {airflow_provider_kpipe.__version__}"
            ) from error


def _mark_of(document: Mapping[str, Any], name: str) -> tuple[str, str | None]:
    """Return the kind of a document and the version that wrote it. Versions before 0.1.0 wrote no mark."""
    if MARK_KEY not in document:
        return name, None
    kind, _, writer = str(document[MARK_KEY])[:100].partition(" ")
    return kind, writer or None


def _check_version(found: Any, known: int, name: str, writer: str | None) -> None:
    if type(found) is int and found == known:
        return
    newer = type(found) is int and found > known
    remedy = (
        "upgrade kpipe here, or finish what that version has begun with it"
        if newer
        else "finish what that version has begun with it, or make the document again"
    )
    is_another = newer or writer not in (None, airflow_provider_kpipe.__version__)
    raise (OtherVersionError if is_another else DocumentError)(
        f"{name}.{VERSION_KEY} is {_short(found)}{_by(writer)}, and kpipe {airflow_provider_kpipe.__version__} reads "
        f"{known}: {remedy}"
    )


def _by(writer: str | None) -> str:
    return f", written by kpipe {writer}" if writer else ""


def _at(where: str) -> str:
    return f"{where}: " if where else ""


def encode(value: Any) -> Any:
    """Return the value in plain JSON types only; a mapping's keys become strings."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    names = _names_of(cast("Hashable", kind))
    if names is not None:
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


@functools.cache
def _names_of(kind: Any) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for anything else."""
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def decode(kind: type[T], document: Any, where: str) -> T:
    """Build `kind`, a dataclass, from a JSON object. A missing field gets its default; an unknown one is ignored."""
    if not isinstance(document, Mapping):
        raise DocumentError(f"{where}: a JSON object is needed, not {_shown(document)}")
    hints, required = _fields_of(cast("Hashable", kind))
    missing = [name for name in required if name not in document]
    if missing:
        raise DocumentError(f"{where} lacks {', '.join(missing)}")
    values = {}
    for name, hint in hints.items():
        if name in document:
            value = document[name]
            values[name] = value if type(value) is hint else _decode_value(hint, value, f"{where}.{name}")
    try:
        return kind(**values)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"{where}: {error}") from error


@functools.cache
def _fields_of(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the type of each field, and the names of the fields without a default."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    missing = dataclasses.MISSING
    required = tuple(each.name for each in fields if each.default is missing and each.default_factory is missing)
    return {each.name: hints[each.name] for each in fields}, required


@functools.cache
def _origin_of(hint: Any) -> Any:
    return get_origin(hint)


@functools.cache
def _args_of(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)


def _decode_value(hint: Any, value: Any, where: str) -> Any:
    if type(value) is hint:
        return value
    origin = _origin_of(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_optional(hint, value, where)
    if origin is typing.Literal:
        if value in _args_of(hint):
            return value
        raise DocumentError(f"{where} is {_shown(value)}; it must be one of {', '.join(map(repr, _args_of(hint)))}")
    if isinstance(origin, type) and issubclass(origin, Sequence):
        kind, *further = _args_of(hint)
        length = None if further in ([], [...]) else 1 + len(further)
        if not isinstance(value, list) or length not in (None, len(value)):
            wanted = "a list" if length is None else f"a list of {length}"
            raise DocumentError(f"{where}: {wanted} is needed, not {_shown(value)}")
        return tuple(_decode_value(kind, item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _decode_mapping(hint, value, where)
    if dataclasses.is_dataclass(hint):
        return decode(cast("type[Any]", hint), value, where)
    # A bool is an int to Python, but `true` stands for no number in our documents: `is int` leaves it out.
    if hint is float and type(value) is int:
        return value
    raise DocumentError(f"{where}: {hint.__name__} is needed, not {_shown(value)}")


def _decode_optional(hint: Any, value: Any, where: str) -> Any:
    kinds = _args_of(hint)
    if value is None and type(None) in kinds:
        return None
    present = [kind for kind in kinds if kind is not type(None)]
    if len(present) != 1:
        raise TypeError(f"{where}: a contract field is one type or None, not {hint}")
    return _decode_value(present[0], value, where)


def _decode_mapping(hint: Any, value: Any, where: str) -> dict[Any, Any]:
    key_kind, item_kind = _args_of(hint)
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
    return f"{type(value).__name__} {_short(value)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
