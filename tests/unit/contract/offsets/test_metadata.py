from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets.metadata import (
    KEY_BYTES,
    LEAST_METADATA_BYTES,
    METADATA_BYTES,
    as_text,
    cut,
    most_spans,
    shortened,
    size_of,
)

# Halves of a pair, control characters and quotes among them.
TEXTS = st.text(max_size=400) | st.text(st.sampled_from('aé漢🙂\ud800\x00"\\\n'), max_size=400)


@given(text=TEXTS)
def test_metadata_is_written_as_utf_8_and_json(text: str) -> None:
    assert json.loads(as_text({"a": text}).encode()) == {"a": text.encode(errors="replace").decode()}


def test_a_letter_takes_no_more_bytes_than_in_utf_8() -> None:
    assert as_text(["帳🙂"]) == '["帳🙂"]'


@given(text=TEXTS, most=st.integers(-3, 500))
def test_a_text_is_cut_by_the_bytes_that_it_takes(text: str, most: int) -> None:
    kept = cut(text, most)
    assert text.startswith(kept)
    assert size_of(kept) <= max(most, 0)
    # Not one character more would fit.
    assert kept == text or size_of(text[: len(kept) + 1]) > max(most, 0)


@given(name=TEXTS, most=st.integers(20, 300))
def test_a_name_that_is_too_long_is_shortened_in_the_same_way_each_time(name: str, most: int) -> None:
    short = shortened(name, most)
    assert size_of(short) <= most
    assert shortened(short, most) == short
    assert (short == name) == (size_of(name) <= most)


def test_two_long_names_stay_two() -> None:
    one, other = ("d" * 250 + "/" + run for run in ("run-1", "run-2"))
    assert shortened(one) != shortened(other)
    assert shortened(one)[:100] == shortened(other)[:100] == "d" * 100
    assert len(shortened("帳" * 250).encode()) <= KEY_BYTES


def test_a_smaller_broker_takes_fewer_spans_and_the_smallest_none() -> None:
    assert [most_spans(each) for each in (METADATA_BYTES, 3_000, LEAST_METADATA_BYTES, 100)] == [48, 22, 0, 0]
