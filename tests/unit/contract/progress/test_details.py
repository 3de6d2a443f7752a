from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.faults.causes import Cause, merged
from airflow_provider_kpipe.contract.offsets.metadata import (
    LEAST_METADATA_BYTES,
    METADATA_BYTES,
    cut,
    most_spans,
    shortened,
    size_of,
)
from airflow_provider_kpipe.contract.offsets.origin import Origin
from airflow_provider_kpipe.contract.progress.details import REASON_BYTES, Details, Told, fit, with_details
from airflow_provider_kpipe.contract.progress.lease import Lease
from airflow_provider_kpipe.contract.progress.progress import Counts, Pieces, StoredProgress

HUGE = 2**63 - 1
# Letters of three and four bytes, quotes, and what JSON spells in six.
TEXTS = st.text(st.sampled_from('a帳🙂"\\\x00\ud800'), max_size=250)
NUMBERS = st.sampled_from([0, 1, 10**12, HUGE])
NAMED = st.dictionaries(st.text(st.sampled_from('ab帳🙂"\x01'), min_size=1, max_size=40), NUMBERS, max_size=45)
CAUSES = st.lists(
    st.builds(Cause, TEXTS.map(lambda t: cut(t, 80)), TEXTS.map(lambda t: cut(t, 80)), NUMBERS, NUMBERS, NUMBERS),
    max_size=12,
)
COUNTS = st.builds(
    lambda numbers, named, causes: replace(Counts(*numbers), named=named, causes=merged(causes)),
    st.lists(NUMBERS, min_size=7, max_size=7),
    NAMED,
    CAUSES,
)


@st.composite
def progresses(draw: st.DrawFn, metadata_bytes: int) -> StoredProgress:
    spans = draw(st.integers(0, most_spans(metadata_bytes) + 1))
    return StoredProgress(
        run_key=shortened(draw(TEXTS) * 4),
        number=HUGE,
        topic_id="c2Vzc2lvbi1pZC1vZi1hLg",
        origin=Origin(HUGE, HUGE),
        start=HUGE,
        end=HUGE,
        counts=draw(COUNTS),
        owner=draw(TEXTS)[:40] + "#01234567",
        reason=draw(st.none() | TEXTS.map(lambda text: text * 4)),
        stops_run=True,
        ended=draw(st.sampled_from([None, "stopped"])),
        lease=Lease(HUGE, HUGE, HUGE),
        took_over=draw(st.none() | TEXTS.map(lambda text: shortened(text * 4))),
        inherited=draw(COUNTS),
        pieces=16,
        unsettled=Pieces(HUGE, 16),
        done=tuple((HUGE - 2 * each - 1, HUGE - 2 * each) for each in range(spans)),
        seconds=12345678.123,
    )


def stored(**told: Any) -> StoredProgress:
    return StoredProgress("dag/run/plan", 7, "id", Origin(1), 10, 50, **{"counts": Counts(), **told})


def test_the_progress_of_most_runs_fits_beside_the_offset() -> None:
    counts = Counts(100, 90, 10, named={"refunds": 3}, causes=(Cause("ValueError", "orders:parse", 10, 0, 17),))
    fitted = fit(stored(counts=counts, reason="offset 17: no amount"))
    assert fitted.details is None
    found = StoredProgress.read_text(fitted.progress)
    assert found is not None
    assert (found.counts, found.counts.causes, found.reason) == (counts, counts.causes, "offset 17: no amount")


@pytest.mark.parametrize("letter", ["a", '"', "\n", "é", "漢", "🙂"])
def test_a_long_reason_keeps_its_beginning(letter: str) -> None:
    found = StoredProgress.read_text(fit(stored(reason=letter * 5_000)).progress)
    assert found is not None
    assert set(found.reason or "") == {letter}
    assert REASON_BYTES - 6 < size_of(found.reason or "") <= REASON_BYTES


@pytest.mark.parametrize("letter", ["a", '"', "\n", "é", "漢", "🙂"])
def test_a_long_reason_is_cut_to_the_bytes_that_are_left_beside_the_offset(letter: str) -> None:
    named = {f"{number:02d}{'帳' * 12}": number for number in range(40)}
    fitted = fit(stored(counts=Counts(named=named), reason=letter * 5_000), LEAST_METADATA_BYTES)
    assert fitted.details is not None
    assert LEAST_METADATA_BYTES - 6 < len(fitted.progress.encode()) <= LEAST_METADATA_BYTES


def test_the_details_hold_the_rest_of_a_large_document() -> None:
    named = {f"{number:02d}{'帳' * 12}": number for number in range(20)}
    causes = tuple(Cause("E" * 80, f"orders:{number}", number + 1, 0, number) for number in range(10))
    counts = Counts(100, 90, 10, named=named, causes=merged(causes))
    made = stored(counts=counts, inherited=Counts(5, named=dict.fromkeys(named, 1)), reason="🙂" * 200)
    fitted = fit(made)
    bare = StoredProgress.read_text(fitted.progress)
    assert bare is not None
    assert (bare.counts.read, bare.counts.named, bare.inherited.named) == (100, {}, {})
    found = with_details(bare, Details.read_text(fitted.details))
    assert (found.counts, found.inherited, found.reason) == (made.counts, made.inherited, made.reason)
    # Fewer kinds than there were, and no record less.
    assert sum(each.count for each in found.counts.causes) == sum(each.count for each in causes)


def test_details_of_another_run_tell_nothing() -> None:
    details = Details("dag/before/plan", 6, "why", Told({"refunds": 3}))
    made = stored(is_detailed=True)
    assert with_details(made, details) == with_details(made, None) == made


def other_details(**changes: Any) -> str:
    """As another version would have written them."""
    document = Details("dag/run/plan", 7, "why", Told({"refunds": 3})).to_json()
    return json.dumps({**document, "kpipe": "Details 9.8.0", **changes})


def test_details_of_a_version_that_only_adds_to_them_are_read() -> None:
    text = other_details(weather={"fair": True}, own={"named": {"refunds": 3}, "causes": [], "tides": [1]})
    found = with_details(stored(reason="?", is_detailed=True), Details.read_text(text))
    assert (found.reason, found.counts.named, found.is_detailed) == ("why", {"refunds": 3}, False)


def test_details_of_a_version_that_told_less_are_read() -> None:
    text = json.dumps({"kpipe": "Details 0.0.9", "schema_version": 1, "run_key": "dag/run/plan", "number": 7})
    found = with_details(stored(reason="?", is_detailed=True), Details.read_text(text))
    assert (found.reason, found.counts.named) == ("?", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            other_details(schema_version=2),
            r"Details\.schema_version is 2, written by kpipe 9\.8\.0, .*: upgrade kpipe here",
        ),
        (other_details(number="seven"), r"Details\.number: int is needed, .*, written by kpipe 9\.8\.0"),
        (other_details()[:-9], "Details: the text is damaged"),
    ],
)
def test_details_that_cannot_be_read_are_not_taken_for_none(text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=rf"^partition 3 in group 'g': {said}"):
        Details.read_text(text, "partition 3 in group 'g'")


def test_counters_that_are_too_many_count_as_one_but_for_those_of_kpipe() -> None:
    named = {**{f"name-{number}": number for number in range(30)}, "others": 5, "kpipe:redriven": 1}
    told = Told.of(Counts(named=named), counters=10)
    assert told.named == {
        **{f"name-{number}": number for number in range(20, 30)},
        "kpipe:redriven": 1,
        "others": 5 + sum(range(20)),
    }


@given(data=st.data(), metadata_bytes=st.integers(LEAST_METADATA_BYTES, METADATA_BYTES))
def test_any_progress_fits_and_keeps_the_position_of_the_run(data: st.DataObject, metadata_bytes: int) -> None:
    made = data.draw(progresses(metadata_bytes))
    fitted = fit(made, metadata_bytes)

    assert len(fitted.progress.encode()) <= metadata_bytes
    assert len((fitted.details or "").encode()) <= metadata_bytes
    stored = StoredProgress.read_text(fitted.progress)
    assert stored is not None
    assert stored.is_detailed == (fitted.details is not None)
    found = with_details(stored, Details.read_text(fitted.details))
    assert replace(found, counts=Counts(), inherited=Counts(), reason=None, run_key="", took_over=None, owner="") == (
        replace(made, counts=Counts(), inherited=Counts(), reason=None, run_key="", took_over=None, owner="")
    )
    assert bool(found.reason) == bool(made.reason)
    for told, meant in ((found.counts, made.counts), (found.inherited, made.inherited)):
        assert (told.read, told.lost) == (meant.read, meant.lost)
