"""What versions of kpipe leave to each other: the documents in `tests/golden/`, and what a deploy makes of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import airflow_provider_kpipe
from airflow_provider_kpipe import __version__
from airflow_provider_kpipe.contract.documents import Document, DocumentError
from tests.kit.documents import DOCUMENTS, GOLDEN, name_of, written

CONTRACT = Path(airflow_provider_kpipe.__file__).parent / "contract"
FILES = sorted(GOLDEN.glob("*/*.json"))
KINDS = {type(each).__name__: type(each) for each in DOCUMENTS}
HEAD = {"kpipe", "schema_version"}

every_document = pytest.mark.parametrize("made", DOCUMENTS, ids=name_of)


def every_kind() -> set[str]:
    for module in CONTRACT.rglob("[a-z]*.py"):
        import_module(
            ".".join(("airflow_provider_kpipe.contract", *module.relative_to(CONTRACT).with_suffix("").parts))
        )
    return {each.__name__ for each in Document.__subclasses__() if each.__module__.startswith("airflow_provider_kpipe")}


def test_every_document_has_a_golden_file_of_this_version() -> None:
    assert set(KINDS) == every_kind()
    assert {each.name for each in FILES if each.parent.name == __version__} == {name_of(each) for each in DOCUMENTS}


@every_document
def test_something_is_in_every_field(made: Any) -> None:
    """A field that is left at its default proves nothing."""
    for each in dataclasses.fields(made):
        if each.default is not dataclasses.MISSING and name_of(made) != "Envelope.json":
            assert getattr(made, each.name) != each.default, each.name


@every_document
def test_a_document_is_written_as_its_golden_file_has_it(made: Document) -> None:
    """For one that is meant to change, "How documents change" in docs/architecture.md says how."""
    golden = json.loads((GOLDEN / __version__ / name_of(made)).read_text())
    assert written(made) == golden, "write it again with: python -m tests.kit.documents"


@every_document
def test_a_golden_file_of_this_version_is_read_as_it_was_written(made: Document) -> None:
    found = type(made).read_text((GOLDEN / __version__ / name_of(made)).read_text())
    assert found == made
    assert found.to_json() == made.to_json()


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_document_of_any_version_is_read_or_refused_by_name(file: Path) -> None:
    document, kind = json.loads(file.read_text()), KINDS[file.stem]
    if document["schema_version"] == kind.SCHEMA_VERSION:
        assert kind.from_json(document)
    else:
        with pytest.raises(DocumentError, match=f"{file.stem}.schema_version .* written by kpipe {file.parent.name}"):
            kind.from_json(document)


def salted(value: Any, salt: Mapping[str, Any]) -> Any:
    """As a later version writes it, which has more fields in everything."""
    if dataclasses.is_dataclass(value):
        more = {name: anything for name, anything in salt.items() if not hasattr(value, name)}
        return {**{each.name: salted(getattr(value, each.name), salt) for each in dataclasses.fields(value)}, **more}
    if isinstance(value, Mapping):
        return {str(key): salted(each, salt) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [salted(each, salt) for each in value]
    return value


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
VERSIONS = st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}(rc1)?", fullmatch=True)
NAMES = st.text(min_size=1, max_size=10).filter(lambda name: name not in HEAD)


@given(made=st.sampled_from(DOCUMENTS), salt=st.dictionaries(NAMES, ANYTHING, min_size=1, max_size=3), writer=VERSIONS)
def test_fields_that_a_next_version_adds_are_ignored(made: Document, salt: dict[str, Any], writer: str) -> None:
    kind = type(made)
    document = {"kpipe": f"{kind.__name__} {writer}", "schema_version": kind.SCHEMA_VERSION, **salted(made, salt)}
    assert kind.read_text(json.dumps(document)) == made


@given(made=st.sampled_from(DOCUMENTS), writer=VERSIONS, data=st.data())
def test_fields_that_a_version_before_lacks_have_their_defaults(made: Any, writer: str, data: Any) -> None:
    kind = type(made)
    defaults = {each.name: each.default for each in dataclasses.fields(made)}
    factories: dict[str, Any] = {each.name: each.default_factory for each in dataclasses.fields(made)}
    optional = [
        name
        for name in defaults
        if not (defaults[name] is dataclasses.MISSING and factories[name] is dataclasses.MISSING)
    ]
    lacking = data.draw(st.sets(st.sampled_from(optional))) if optional else set()
    document = {name: value for name, value in written(made).items() if name not in lacking}
    before = {
        name: defaults[name] if defaults[name] is not dataclasses.MISSING else factories[name]() for name in lacking
    }
    found = kind.read_json({**document, "kpipe": f"{kind.__name__} {writer}"})
    assert found == dataclasses.replace(made, **before)


@given(made=st.sampled_from(DOCUMENTS), writer=VERSIONS, version=st.integers(0, 99))
def test_another_schema_version_is_refused_with_its_writer(made: Document, writer: str, version: int) -> None:
    kind = type(made)
    if version == kind.SCHEMA_VERSION:
        return
    document = {**written(made), "kpipe": f"{kind.__name__} {writer}", "schema_version": version}
    remedy = "upgrade kpipe here" if version > kind.SCHEMA_VERSION else "finish what that version has begun"
    with pytest.raises(DocumentError, match=rf"schema_version is {version}, written by kpipe {writer}, .*{remedy}"):
        kind.read_text(json.dumps(document))
