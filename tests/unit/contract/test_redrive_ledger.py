from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.redrive_ledger import LedgerEntry, Redriven, ledger_key

RANGE = PartitionRange(0, 10, 20, None)


def test_an_entry_comes_back_from_its_bytes_as_it_went() -> None:
    entry = LedgerEntry("dag/run/redrive", "parked", "2026-01-31T12:00:00+00:00")
    assert LedgerEntry.from_json(json.loads(entry.to_text())) == entry


@given(entered=st.lists(st.integers(0, 30)))
def test_the_offsets_of_the_range_are_found_again(entered: list[int]) -> None:
    redriven = Redriven("id", RANGE)
    for each in entered:
        redriven.note(ledger_key("id", each), b"{}")
    expected = {each for each in entered if 10 <= each < 20}
    assert {each for each in range(40) if each in redriven} == expected
    assert len(redriven) == len(expected)


def test_entries_of_a_topic_that_was_made_anew_and_strange_ones_mean_nothing() -> None:
    redriven = Redriven("id", RANGE)
    for key in (None, b"", b"id/", b"id/x", b"id/-12", b"other/12", b"id/1\xb2", b"id/12/13"):
        redriven.note(key, b"{}")
    assert len(redriven) == 0


def test_an_entry_may_be_taken_back() -> None:
    redriven = Redriven("id", RANGE)
    redriven.note(ledger_key("id", 12), b"{}")
    redriven.note(ledger_key("id", 12), None)
    redriven.note(ledger_key("id", 13), None)
    assert 12 not in redriven
