from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.offsets.limits import At, Explicit, Latest, OffsetLimit
from airflow_provider_kpipe.forms.backfill import FIELDS, BackfillRequest
from airflow_provider_kpipe.forms.fields import FormError

NOON = "2026-01-31T12:00:00+00:00"
NOON_MS = 1_769_860_800_000
HOUR_MS = 3_600_000
UNTOUCHED: dict[str, Any] = {
    "window_start": None,
    "window_end": None,
    "start_offsets": None,
    "end_offsets": None,
    "partitions": None,
    "max_records": None,
    "dry_run": False,
    "publish": False,
}

LIMITS: list[tuple[dict[str, Any], OffsetLimit, OffsetLimit]] = [
    ({"window_start": NOON}, At(NOON_MS), Latest()),
    ({"window_start": "2026-01-31T12:00:00"}, At(NOON_MS), Latest()),
    ({"window_start": "2026-01-31T12:00:00Z"}, At(NOON_MS), Latest()),
    ({"window_start": f" {NOON} "}, At(NOON_MS), Latest()),
    ({"window_start": NOON, "window_end": "2026-01-31T13:00:00+00:00"}, At(NOON_MS), At(NOON_MS + HOUR_MS)),
    ({"window_start": NOON, "window_end": ""}, At(NOON_MS), Latest()),
    ({"window_start": NOON, "start_offsets": {}, "end_offsets": ""}, At(NOON_MS), Latest()),
    ({"start_offsets": {"0": 1200, "1": 900}}, Explicit({0: 1200, 1: 900}), Latest()),
    ({"start_offsets": '{"0": 1200}'}, Explicit({0: 1200}), Latest()),
    ({"start_offsets": {"0": "1200"}}, Explicit({0: 1200}), Latest()),
    ({"start_offsets": {"0": 5}, "end_offsets": {"0": 6}}, Explicit({0: 5}), Explicit({0: 6})),
    ({"start_offsets": {"0": 0}, "window_start": "", "window_end": None}, Explicit({0: 0}), Latest()),
]


@pytest.mark.parametrize(("form", "start", "end"), LIMITS, ids=[repr(form) for form, _, _ in LIMITS])
def test_a_form_that_makes_sense_becomes_limits(form: dict[str, Any], start: OffsetLimit, end: OffsetLimit) -> None:
    request = BackfillRequest.from_form({**UNTOUCHED, **form})
    assert (request.start, request.end) == (start, end)


def test_an_empty_form_limits_nothing_reads_and_leaves_the_live_group_alone() -> None:
    request = BackfillRequest.from_form({"window_start": NOON})
    assert request == BackfillRequest(
        start=At(NOON_MS), end=Latest(), partitions=None, max_records=None, dry_run=False, publish=False
    )


@pytest.mark.parametrize(
    ("filled_in", "partitions"),
    [
        (None, None),
        ("", None),
        ([], None),
        ("  ", None),
        ("0, 2, 5", (0, 2, 5)),
        ("5 2,0", (0, 2, 5)),
        ("7", (7,)),
        (7, (7,)),
        (0, (0,)),
        ([2, "0", 2], (0, 2)),
        ("1,1,", (1,)),
    ],
    ids=repr,
)
def test_partitions_are_read_in_every_form_they_come_in(filled_in: Any, partitions: tuple[int, ...] | None) -> None:
    assert BackfillRequest.from_form({"window_start": NOON, "partitions": filled_in}).partitions == partitions


@pytest.mark.parametrize(("filled_in", "most"), [(None, None), ("", None), (1, 1), ("5000", 5000)], ids=repr)
def test_the_number_of_records_is_read_in_every_form_it_comes_in(filled_in: Any, most: int | None) -> None:
    assert BackfillRequest.from_form({"window_start": NOON, "max_records": filled_in}).max_records == most


def test_partitions_may_leave_out_some_that_have_offsets() -> None:
    request = BackfillRequest.from_form({"start_offsets": {"0": 5, "1": 7}, "partitions": "1"})
    assert request.partitions == (1,)


def test_the_two_switches_are_taken_over() -> None:
    request = BackfillRequest.from_form({"window_start": NOON, "dry_run": True, "publish": True})
    assert (request.dry_run, request.publish) == (True, True)


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "Nothing says where to start"),
    ({"window_end": NOON}, "Nothing says where to start"),
    ({"end_offsets": {"0": 5}}, "Nothing says where to start"),
    ({"window_start": "", "start_offsets": {}}, "Nothing says where to start"),
    ({"window_start": NOON, "start_offsets": {"0": 1}}, "Both window_start and start_offsets are filled in"),
    ({"window_end": NOON, "start_offsets": {"0": 1}}, "Both window_end and start_offsets are filled in"),
    ({"window_start": NOON, "end_offsets": {"0": 1}}, "Both window_start and end_offsets are filled in"),
    ({"window_start": "yesterday"}, "window_start is 'yesterday', which is not a date and time"),
    ({"window_start": "latest"}, "window_start is 'latest', which is not a date and time"),
    ({"window_start": "committed"}, "window_start is 'committed'"),
    ({"window_start": "2026-02-30T00:00:00"}, "window_start is '2026-02-30T00:00:00'"),
    ({"window_start": 1769860800000}, "window_start is 1769860800000"),
    ({"window_start": True}, "window_start is True"),
    ({"window_start": {"0": 1}}, "window_start is {'0': 1}"),
    ({"window_start": "1969-12-31T23:59:59.999"}, "window_start"),
    ({"window_start": NOON, "window_end": "soon"}, "window_end is 'soon', which is not a date and time"),
    ({"window_start": NOON, "window_end": NOON}, "window_end has to be later than window_start"),
    ({"window_start": NOON, "window_end": "2026-01-31T12:59:00+01:00"}, "before it starts (2026-01-31T12:00:00"),
    ({"start_offsets": "{"}, "start_offsets cannot be read"),
    ({"start_offsets": "latest"}, "start_offsets cannot be read"),
    ({"start_offsets": '"latest"'}, "start_offsets is"),
    ({"start_offsets": [5, 6]}, "start_offsets"),
    ({"start_offsets": 5}, "start_offsets"),
    ({"start_offsets": "{}"}, "start_offsets"),
    ({"start_offsets": {"zero": 5}}, "start_offsets cannot be read: start_offsets has 'zero': 5"),
    ({"start_offsets": {"0": -5}}, "start_offsets cannot be read: start_offsets has '0': -5"),
    ({"start_offsets": {"0": 1.5}}, "start_offsets cannot be read: start_offsets has '0': 1.5"),
    ({"start_offsets": {"0": None}}, "start_offsets cannot be read: start_offsets has '0': None"),
    ({"start_offsets": {"0": True}}, "start_offsets cannot be read: start_offsets has '0': True"),
    ({"start_offsets": '{"0": 5, "0": 7}'}, "start_offsets cannot be read: '0' is named twice, with 5 and with 7"),
    ({"start_offsets": {"0": 5}, "end_offsets": '{"0": 6, "0": 6}'}, "end_offsets cannot be read: '0' is named twice"),
    ({"start_offsets": {"0": 5, " 0": 7}}, "start_offsets cannot be read: start_offsets names partition 0 twice"),
    ({"start_offsets": {"0": 5}, "partitions": "0, 1"}, "partitions names 1, and start_offsets does not"),
    ({"start_offsets": '{"0": 1e400}'}, "start_offsets cannot be read: start_offsets has '0': inf"),
    (
        {"start_offsets": {"0": 5}, "end_offsets": {"1": 9}},
        "Partition 0 is in only one of start_offsets and end_offsets",
    ),
    ({"start_offsets": {"0": 5}, "end_offsets": {"0": 9, "1": 9}}, "Partition 1 is in only one of"),
    ({"start_offsets": {"0": 5}, "end_offsets": {"0": 5}}, "Partition 0 ends at 5, which is not after its start 5"),
    ({"start_offsets": {"0": 5}, "end_offsets": {"0": 4}}, "Partition 0 ends at 4, which is not after its start 5"),
    ({"start_offsets": {"0": 5}, "end_offsets": "soon"}, "end_offsets cannot be read"),
    ({"window_start": NOON, "partitions": "a"}, "partitions has 'a', which is not a partition"),
    ({"window_start": NOON, "partitions": "0;1"}, "partitions has '0;1'"),
    ({"window_start": NOON, "partitions": "-1"}, "partitions has '-1'"),
    ({"window_start": NOON, "partitions": [1.0]}, "partitions has 1.0"),
    ({"window_start": NOON, "partitions": True}, "partitions has True"),
    ({"window_start": NOON, "partitions": [None]}, "partitions has None"),
    ({"window_start": NOON, "partitions": {"0": 1}}, "partitions has {'0': 1}"),
    ({"window_start": NOON, "partitions": ","}, "partitions"),
    ({"window_start": NOON, "max_records": 0}, "max_records is 0"),
    ({"window_start": NOON, "max_records": "0"}, "max_records is '0'"),
    ({"window_start": NOON, "max_records": -5}, "max_records is -5"),
    ({"window_start": NOON, "max_records": 1.5}, "max_records is 1.5"),
    ({"window_start": NOON, "max_records": True}, "max_records is True"),
    ({"window_start": NOON, "max_records": False}, "max_records is False"),
    ({"window_start": NOON, "max_records": "many"}, "max_records is 'many'"),
    ({"window_start": NOON, "max_records": [5]}, "max_records is [5]"),
    ({"window_start": NOON, "dry_run": "false"}, "dry_run is 'false'. Choose true or false"),
    ({"window_start": NOON, "dry_run": 1}, "dry_run is 1"),
    ({"window_start": NOON, "publish": None}, "publish is None"),
    ({"window_start": NOON, "publish": "yes"}, "publish is 'yes'"),
    ({"window_start": NOON, "from": 5}, "The field 'from' is not known. Known are: window_start"),
]


@pytest.mark.parametrize(("form", "said"), BAD, ids=[repr(form) for form, _ in BAD])
def test_a_form_that_makes_no_sense_is_refused_and_names_the_field(form: dict[str, Any], said: str) -> None:
    with pytest.raises(FormError) as refusal:
        BackfillRequest.from_form(form)
    assert said in str(refusal.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)


@given(form=st.dictionaries(st.sampled_from(FIELDS), JSON))
@settings(deadline=None, max_examples=200)
def test_any_input_becomes_a_request_or_an_error_with_its_remedy(form: dict[str, Any]) -> None:
    outcome = ""
    try:
        BackfillRequest.from_form(form)
    except FormError as refusal:
        outcome = str(refusal)
    assert not outcome or any(name in outcome for name in FIELDS)
