from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe import __version__
from airflow_provider_kpipe.contract.documents import Document, DocumentError, OtherVersionError, encode


@dataclass(frozen=True, slots=True)
class Inner:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.high < self.low:
            raise ValueError(f"high {self.high} is below low {self.low}")


@dataclass(frozen=True, slots=True)
class Sample(Document):
    SCHEMA_VERSION: ClassVar[int] = 3

    name: str
    count: int
    seconds: float
    sure: bool
    colour: Literal["red", "blue"]
    note: str | None
    inner: Inner
    maybe_inner: Inner | None
    numbers: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    inners: tuple[Inner, ...]
    words: Sequence[str]
    offsets: Mapping[int, int]
    settings: Mapping[str, str]
    maybe_numbers: tuple[int, ...] | None
    added: str = "as before"
    added_later: tuple[int, ...] = field(default_factory=lambda: (1,))


HEAD = ("kpipe", "schema_version")
INNERS = st.integers(0, 50).flatmap(lambda low: st.builds(Inner, st.just(low), st.integers(low, 100)))
SAMPLES = st.builds(
    Sample,
    name=st.text(),
    count=st.integers(),
    seconds=st.floats(allow_nan=False),
    sure=st.booleans(),
    colour=st.sampled_from(["red", "blue"]),
    note=st.none() | st.text(),
    inner=INNERS,
    maybe_inner=st.none() | INNERS,
    numbers=st.lists(st.integers(), max_size=3).map(tuple),
    pairs=st.lists(st.tuples(st.integers(), st.integers()), max_size=3).map(tuple),
    inners=st.lists(INNERS, max_size=3).map(tuple),
    words=st.lists(st.text(), max_size=3).map(tuple),
    offsets=st.dictionaries(st.integers(), st.integers(), max_size=3),
    settings=st.dictionaries(st.text(), st.text(), max_size=3),
    maybe_numbers=st.none() | st.lists(st.integers(), max_size=3).map(tuple),
)


def document(**changes: Any) -> dict[str, Any]:
    fitting = {
        "kpipe": f"Sample {__version__}",
        "schema_version": 3,
        "name": "n",
        "count": 1,
        "seconds": 1.5,
        "sure": True,
        "colour": "red",
        "note": None,
        "inner": {"low": 1, "high": 2},
        "maybe_inner": None,
        "numbers": [1, 2],
        "pairs": [[1, 2]],
        "inners": [{"low": 1, "high": 2}],
        "words": ["a"],
        "offsets": {"0": 5},
        "settings": {"a": "b"},
        "maybe_numbers": None,
        "added": "a",
        "added_later": [],
    }
    return {**fitting, **changes}


@given(sample=SAMPLES)
@settings(deadline=None, max_examples=150)
def test_a_document_comes_back_from_json_as_it_went(sample: Sample) -> None:
    assert Sample.from_json(json.loads(json.dumps(sample.to_json()))) == sample


def test_a_document_says_which_version_it_is() -> None:
    assert Sample.from_json(document()).to_json() == document()


def test_a_whole_number_is_taken_where_a_fraction_may_be() -> None:
    assert Sample.from_json(document(seconds=3)).seconds == 3


@pytest.mark.parametrize("version", [2, 4, None, "3", 3.0, [3], {}], ids=repr)
def test_an_unknown_schema_version_is_refused(version: Any) -> None:
    with pytest.raises(DocumentError, match=r"Sample\.schema_version is .* reads 3: "):
        Sample.from_json(document(schema_version=version))


def test_a_newer_document_is_refused_with_the_version_that_wrote_it_and_the_remedy() -> None:
    with pytest.raises(DocumentError) as refusal:
        Sample.from_json(document(kpipe="Sample 9.8.0", schema_version=4))
    assert str(refusal.value) == (
        f"Sample.schema_version is 4, written by kpipe 9.8.0, and kpipe {__version__} reads 3: "
        "upgrade kpipe here, or finish what that version has begun with it"
    )


def test_an_older_document_is_refused_with_another_remedy() -> None:
    with pytest.raises(
        DocumentError, match=r"written by kpipe 0\.0\.1, .*: finish what that version has begun with it"
    ):
        Sample.from_json(document(kpipe="Sample 0.0.1", schema_version=2))


def test_a_field_that_does_not_fit_is_named_with_the_version_that_wrote_it() -> None:
    with pytest.raises(DocumentError, match=r"^Sample\.colour is str 'green'.*, written by kpipe 9\.8\.0, and this is"):
        Sample.from_json(document(kpipe="Sample 9.8.0", colour="green"))


def test_a_document_of_another_kind_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^Sample: this is a Plan, written by kpipe 9\.8\.0, which belongs"):
        Sample.from_json(document(kpipe="Plan 9.8.0"))


def test_a_document_from_before_there_were_marks_is_read() -> None:
    bare = document()
    del bare["kpipe"]
    assert Sample.read_json(bare) == Sample.from_json(document())


def test_a_bool_is_no_schema_version() -> None:
    @dataclass(frozen=True, slots=True)
    class First(Document):
        SCHEMA_VERSION: ClassVar[int] = 1

    with pytest.raises(DocumentError, match=r"First\.schema_version is True"):
        First.from_json({"schema_version": True})


def test_a_missing_schema_version_is_refused() -> None:
    bare = document()
    del bare["schema_version"]
    with pytest.raises(DocumentError, match=r"Sample\.schema_version is None"):
        Sample.from_json(bare)


@pytest.mark.parametrize("value", [None, "x", 1, True, [], [{}]], ids=repr)
def test_a_document_that_is_not_an_object_is_refused(value: Any) -> None:
    with pytest.raises(DocumentError, match="Sample: a JSON object is needed, not"):
        Sample.from_json(value)


@pytest.mark.parametrize("field", [name for name in document() if name not in HEAD and not name.startswith("added")])
def test_each_missing_field_is_named(field: str) -> None:
    lacking = document()
    del lacking[field]
    with pytest.raises(DocumentError, match=rf"^Sample lacks {field}$"):
        Sample.from_json(lacking)


def test_a_field_with_a_default_may_be_missing() -> None:
    older = document()
    del older["added"], older["added_later"]
    found = Sample.from_json(older)
    assert (found.added, found.added_later) == ("as before", (1,))


def test_an_unknown_field_is_ignored_at_any_depth() -> None:
    newer = document(inner={"low": 1, "high": 2, "mid": 3}, colr="red")
    assert Sample.from_json(newer) == Sample.from_json(document())


FOREIGN = [None, "", "by hand", "{", "null", "1", "[]", "{}", '{"name":"n"}', "[" * 100_000, "9" * 5_000]


@pytest.mark.parametrize("text", FOREIGN, ids=[repr(each)[:20] for each in FOREIGN])
def test_a_missing_or_foreign_text_is_no_document(text: str | None) -> None:
    assert Sample.read_text(text) is None


OURS = {
    "another version": json.dumps(document(schema_version=4)),
    "another version without a mark": json.dumps({"schema_version": 4}),
    "no version": json.dumps({"kpipe": "Sample 0.1.0"}),
    "a field of another kind": json.dumps(document(count="1")),
    "another document": json.dumps(document(kpipe="Plan 0.1.0")),
    "no text for a mark": json.dumps(document(kpipe={"a": 1})),
    "damaged": json.dumps(document(), separators=(",", ":"))[:-5],
}


@pytest.mark.parametrize("text", OURS.values(), ids=OURS)
def test_an_unreadable_document_of_ours_is_never_treated_as_missing(text: str) -> None:
    with pytest.raises(DocumentError, match=r"^partition 3: Sample"):
        Sample.read_text(text, "partition 3")


@pytest.mark.parametrize(
    ("changes", "is_another"),
    [
        ({"schema_version": 4}, True),
        ({"kpipe": "Sample 0.0.1", "schema_version": 2}, True),
        ({"kpipe": "Sample 9.8.0", "count": "1"}, True),
        ({"schema_version": 2}, False),
        ({"schema_version": "4"}, False),
        ({"count": "1"}, False),
        ({"kpipe": "Plan 9.8.0"}, False),
    ],
    ids=repr,
)
def test_a_document_of_another_version_differs_from_an_unreadable_one(
    changes: dict[str, Any], is_another: bool
) -> None:
    ways: list[Callable[[Any], object]] = [Sample.from_json, lambda changed: Sample.read_json(changed, "partition 3")]
    for read in ways:
        with pytest.raises(DocumentError) as refusal:
            read(document(**changes))
        assert (type(refusal.value) is OtherVersionError) is is_another


REFUSED: list[tuple[str, Any, str]] = [
    ("name", 1, "Sample.name: str is needed, not int 1"),
    ("name", None, "Sample.name: str is needed, not NoneType None"),
    ("name", ["a"], "Sample.name: str is needed, not list ['a']"),
    ("count", True, "Sample.count: int is needed, not bool True"),
    ("count", "1", "Sample.count: int is needed, not str '1'"),
    ("count", 1.0, "Sample.count: int is needed, not float 1.0"),
    ("count", None, "Sample.count: int is needed, not NoneType None"),
    ("seconds", "1.5", "Sample.seconds: float is needed, not str '1.5'"),
    ("seconds", True, "Sample.seconds: float is needed, not bool True"),
    ("sure", 1, "Sample.sure: bool is needed, not int 1"),
    ("sure", "true", "Sample.sure: bool is needed, not str 'true'"),
    ("sure", None, "Sample.sure: bool is needed, not NoneType None"),
    ("colour", "green", "Sample.colour is str 'green'; it must be one of 'red', 'blue'"),
    ("colour", None, "Sample.colour is NoneType None; it must be one of"),
    ("colour", ["red"], "Sample.colour is list ['red']; it must be one of"),
    ("note", 5, "Sample.note: str is needed, not int 5"),
    ("inner", None, "Sample.inner: a JSON object is needed, not NoneType None"),
    ("inner", [1, 2], "Sample.inner: a JSON object is needed, not list [1, 2]"),
    ("inner", {"low": 1}, "Sample.inner lacks high"),
    ("inner", {"low": 1, "high": "2"}, "Sample.inner.high: int is needed, not str '2'"),
    ("inner", {"low": 2, "high": 1}, "Sample.inner: high 1 is below low 2"),
    ("maybe_inner", {"low": False, "high": 1}, "Sample.maybe_inner.low: int is needed, not bool False"),
    ("numbers", 1, "Sample.numbers: a list is needed, not int 1"),
    ("numbers", {"0": 1}, "Sample.numbers: a list is needed, not dict"),
    ("numbers", "12", "Sample.numbers: a list is needed, not str '12'"),
    ("numbers", None, "Sample.numbers: a list is needed, not NoneType None"),
    ("numbers", [1, True], "Sample.numbers[1]: int is needed, not bool True"),
    ("pairs", [[1, 2], [1, 2, 3]], "Sample.pairs[1]: a list of 2 is needed, not list [1, 2, 3]"),
    ("pairs", [[1]], "Sample.pairs[0]: a list of 2 is needed, not list [1]"),
    ("pairs", [[1, "2"]], "Sample.pairs[0][1]: int is needed, not str '2'"),
    ("inners", [{"low": 1, "high": 2}, {"low": 1}], "Sample.inners[1] lacks high"),
    ("inners", [None], "Sample.inners[0]: a JSON object is needed, not NoneType None"),
    ("words", "abc", "Sample.words: a list is needed, not str 'abc'"),
    ("words", ["a", 2], "Sample.words[1]: str is needed, not int 2"),
    ("offsets", [1], "Sample.offsets: a JSON object is needed, not list [1]"),
    ("offsets", {"zero": 1}, "Sample.offsets: the key 'zero' is not int"),
    ("offsets", {"1": "5"}, "Sample.offsets['1']: int is needed, not str '5'"),
    ("offsets", {"1": None}, "Sample.offsets['1']: int is needed, not NoneType None"),
    ("settings", {"linger.ms": 5}, "Sample.settings['linger.ms']: str is needed, not int 5"),
    ("settings", None, "Sample.settings: a JSON object is needed, not NoneType None"),
    ("maybe_numbers", [None], "Sample.maybe_numbers[0]: int is needed, not NoneType None"),
]


@pytest.mark.parametrize(("field", "value", "said"), REFUSED, ids=[f"{f}={v!r}" for f, v, _ in REFUSED])
def test_a_value_of_the_wrong_kind_is_refused_with_the_path_of_its_field(field: str, value: Any, said: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        Sample.from_json(document(**{field: value}))
    assert said in str(refusal.value)


def test_a_long_value_is_shown_shortened() -> None:
    with pytest.raises(DocumentError) as refusal:
        Sample.from_json(document(count="9" * 10_000))
    assert len(str(refusal.value)) < 150


def test_encoding_gives_plain_json_types_only() -> None:
    plain = encode({1: (Inner(1, 2),), "a": [None, True, 1.5]})
    assert plain == {"1": [{"low": 1, "high": 2}], "a": [None, True, 1.5]}
    assert type(plain["1"]) is list
