from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.clean_text import cleaned, cleaned_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 帳 😀", "größe 帳 😀"),
        ("a\x00b", "a\\x00b"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("\ud800", "\\ud800"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("next\u2028line", "next\\u2028line"),
        ("no\u00a0break \U0001f468\u200d\U0001f469", "no\u00a0break \U0001f468\u200d\U0001f469"),
    ],
)
def test_unprintable_characters_are_spelled_out(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@given(text=st.text(st.characters()), most=st.integers(0, 10))
def test_it_is_short_and_what_is_clean_stays(text: str, most: int) -> None:
    shown = cleaned(text, most)
    assert len(shown) <= most
    assert cleaned(shown) == shown


@given(document=JSON)
def test_a_document_is_such_as_databases_take(document: object) -> None:
    text = json.dumps(cleaned_json(document))
    assert "\\u0000" not in text
    json.dumps(cleaned_json(document), ensure_ascii=False).encode()
    assert cleaned_json(json.loads(text)) == json.loads(text)


def test_names_of_fields_are_texts_too() -> None:
    assert cleaned_json({"a\x00": [{"b": "\x1b"}, ("\x00", 1, None)]}) == {
        "a\\x00": [{"b": "\\x1b"}, ["\\x00", 1, None]]
    }
