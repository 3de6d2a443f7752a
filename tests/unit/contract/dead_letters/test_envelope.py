from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.envelope import Envelope
from airflow_provider_kpipe.contract.documents import DocumentError
from tests.kit.letters import ANY_TEXTS, LETTER, letters


@given(letter=letters())
def test_a_letter_comes_out_as_it_went_in(letter: DeadLetter) -> None:
    envelope = Envelope.read_bytes(Envelope.around(letter).to_bytes())
    assert envelope is not None
    assert envelope.opened() == letter


@given(letter=letters(ANY_TEXTS))
def test_it_is_json_in_utf_8_whatever_was_raised(letter: DeadLetter) -> None:
    assert json.loads(Envelope.around(letter).to_bytes().decode())["schema_version"] == 1


@given(letter=letters())
def test_its_bytes_are_its_document(letter: DeadLetter) -> None:
    envelope = Envelope.around(letter)
    assert json.loads(envelope.to_bytes()) == envelope.to_json()


def test_an_envelope_has_its_documented_fields() -> None:
    document = json.loads(Envelope.around(LETTER).to_bytes())
    assert document["key"] == "aw=="
    assert document["value"] == "AP8="
    assert document["headers"] == [["a", "MQ=="], ["b", None], ["a", "/wA="]]
    assert document["source"] == {
        "topic": "orders",
        "partition": 3,
        "offset": 5,
        "timestamp": 1_700_000_000_000,
        "timestamp_kind": "create_time",
    }
    assert document["fault"]["message"] == "no amount"
    assert (document["attempt"], document["first"]) == (1, None)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2}, "Envelope.schema_version is 2"),
    ({"headers": [["a"]]}, "the header ['a'] is not a pair"),
    ({"headers": [[None, "MQ=="]]}, "is not a pair of a name and a value"),
    ({"headers": {"a": "MQ=="}}, "Envelope.headers: a list is needed"),
    ({"attempt": 0}, "attempt is 0"),
    ({"attempt": True}, "Envelope.attempt: int is needed"),
    ({"source": {"topic": "orders"}}, "Envelope.source lacks"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_document_that_does_not_fit_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentError) as refusal:
        Envelope.from_json({**Envelope.around(LETTER).to_json(), **changes})
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"key": "a"}, "Envelope.key"), ({"value": "ü"}, "Envelope.value"), ({"headers": [["a", "?"]]}, "headers['a']")],
)
def test_the_error_names_the_field_that_is_not_base64(changes: dict[str, Any], said: str) -> None:
    document = json.loads(Envelope.around(LETTER).to_bytes())
    with pytest.raises(DocumentError) as refusal:
        Envelope.from_json({**document, **changes}).opened()
    assert said in str(refusal.value)
    assert "is not base64" in str(refusal.value)


@pytest.mark.parametrize("name", ["\ud800", "a\0b"])
def test_a_name_that_no_header_can_hold_is_refused(name: str) -> None:
    document = {**Envelope.around(LETTER).to_json(), "headers": [[name, "MQ=="]]}
    with pytest.raises(DocumentError, match=r"Envelope\.headers: "):
        Envelope.from_json(document).opened()


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"[" * 100_000, b"[]"], ids=["empty", "cut", "bytes", "deep", "list"]
)
def test_a_value_that_is_not_a_json_object_is_no_envelope(raw: bytes) -> None:
    assert Envelope.read_bytes(raw) is None
