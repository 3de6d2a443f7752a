from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, DeadLetter
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, Place, Redriven, SourceRecord, ledger_key
from tests.kit.letters import LETTER

RANGE = PartitionRange(0, 10, 20, None)
RECORD = SourceRecord.of(LETTER)


def entry(record: SourceRecord | None = RECORD) -> bytes:
    return LedgerEntry("dag/run/redrive", "parked", "2026-01-31T12:00:00+00:00", record).to_text().encode()


@pytest.mark.parametrize("record", [RECORD, None])
def test_an_entry_comes_back_from_its_bytes_as_it_went(record: SourceRecord | None) -> None:
    assert LedgerEntry.from_json(json.loads(entry(record))).record == record


@given(entered=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30))))
def test_the_letters_of_the_ranges_are_found_again(entered: list[tuple[int, int]]) -> None:
    redriven = Redriven("id", [RANGE, PartitionRange(2, 0, 5, None)])
    for partition, offset in entered:
        redriven.note(partition, ledger_key("id", offset), b"{}")
    expected = {(at, offset) for at, offset in entered if (at == 0 and 10 <= offset < 20) or (at == 2 and offset < 5)}
    assert {Place(*each) for each in entered if Place(*each) in redriven} == expected
    assert len(redriven) == len(expected)


def test_the_records_of_all_letters_are_known_wherever_they_lie() -> None:
    redriven = Redriven("id", [RANGE])
    redriven.note(7, ledger_key("id", 99), entry())
    redriven.note(0, ledger_key("id", 12), entry(None))
    redriven.note(0, ledger_key("id", 13), b"in other words")
    assert redriven.letters == {RECORD.digest: (7, 99)}
    assert [offset for offset in range(10, 20) if Place(0, offset) in redriven] == [12, 13]


def test_entries_of_a_re_created_topic_and_strange_ones_mean_nothing() -> None:
    redriven = Redriven("id", [RANGE])
    for key in (None, b"", b"id/", b"id/x", b"id/-12", b"other/12", b"id/1\xb2", b"id/12/13", b"id/" + b"9" * 5_000):
        redriven.note(0, key, entry())
    assert (len(redriven), redriven.letters) == (0, {})


def test_an_entry_may_be_taken_back() -> None:
    redriven = Redriven("id", [RANGE])
    redriven.note(0, ledger_key("id", 12), entry())
    redriven.note(0, ledger_key("id", 12), None)
    redriven.note(0, ledger_key("id", 13), None)
    assert (Place(0, 12) in redriven, redriven.letters) == (False, {})


def test_an_entry_that_a_later_version_wrote_is_never_taken_for_none() -> None:
    newer = json.dumps({**json.loads(entry()), "schema_version": 99}).encode()
    with pytest.raises(DocumentError, match=r"entry 'id/12': LedgerEntry.schema_version is 99"):
        Redriven("id", [RANGE]).note(0, ledger_key("id", 12), newer)


OTHER_COORDINATES: list[dict[str, Any]] = [{"topic": "returns"}, {"partition": 4}, {"offset": 6}, {"timestamp": 7}]


@pytest.mark.parametrize(
    "other",
    [
        replace(LETTER, pipeline="returns"),
        *(replace(LETTER, source=replace(LETTER.source, **change)) for change in OTHER_COORDINATES),
    ],
)
def test_one_record_is_what_one_pipeline_read_at_one_place(other: DeadLetter) -> None:
    assert SourceRecord.of(other).digest != RECORD.digest
    assert SourceRecord.of(replace(LETTER, run_key="backfill", attempt=3, value=b"as a mapper has it")) == RECORD


def test_names_from_headers_are_short_enough_for_an_entry() -> None:
    letter = replace(LETTER, pipeline="p" * 900_000, source=Coordinates("t" * 900_000, 0, 1))
    assert len(entry(SourceRecord.of(letter))) < 2_000
