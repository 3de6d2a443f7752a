from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_kpipe.contract.offsets.limits import At, Explicit
from airflow_provider_kpipe.forms.fields import (
    FormError,
    each_name_once,
    moment,
    number_from_one,
    offset_per_partition,
    offset_range,
    refuse_unknown,
    yes_or_no,
)


def test_fields_that_nobody_knows_are_refused_with_those_that_are_known() -> None:
    refuse_unknown({"start": 1}, ("start", "end"))
    with pytest.raises(FormError, match=r"The field 'bgn' is not known\. Known are: start, end\."):
        refuse_unknown({"start": 1, "bgn": 2, "stop": 3}, ("start", "end"))


@pytest.mark.parametrize("text", ["1970-01-01T00:01:00", " 1970-01-01T00:01:00Z ", "1970-01-01T01:01:00+01:00"])
def test_a_moment_without_an_offset_is_utc(text: str) -> None:
    assert moment("window_start", text) == At(60_000)


@pytest.mark.parametrize("value", ["", "soon", "latest", 60_000, None, {"0": 1}], ids=repr)
def test_anything_else_is_no_moment(value: Any) -> None:
    with pytest.raises(FormError, match=r"window_start is .*, which is not a date and time"):
        moment("window_start", value)


@pytest.mark.parametrize(
    ("form", "start", "end"),
    [
        ({}, None, None),
        ({"start_offsets": {}, "end_offsets": ""}, None, None),
        ({"start_offsets": {"0": 5}}, Explicit({0: 5}), None),
        ({"end_offsets": '{"1": 9}'}, None, Explicit({1: 9})),
        ({"start_offsets": {"0": 5}, "end_offsets": {"0": 6}}, Explicit({0: 5}), Explicit({0: 6})),
    ],
    ids=repr,
)
def test_either_end_of_the_offsets_may_be_left_empty(
    form: dict[str, Any], start: Explicit | None, end: Explicit | None
) -> None:
    assert offset_range(form) == (start, end)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ({"0": 5}, {"0": 5}, "Partition 0 ends at 5, which is not after its start 5"),
        ({"0": 5, "1": 5}, {"0": 9}, "Partition 1 is in only one of start_offsets and end_offsets"),
    ],
)
def test_two_ends_have_to_fit_each_other(start: dict[str, int], end: dict[str, int], said: str) -> None:
    with pytest.raises(FormError, match=said):
        offset_range({"start_offsets": start, "end_offsets": end})


@pytest.mark.parametrize(
    ("value", "said"), [("{", "offsets cannot be read"), ("5", "offsets"), ('{"0": 1, "0": 2}', "'0' is named twice")]
)
def test_offsets_are_written_per_partition(value: str, said: str) -> None:
    with pytest.raises(FormError, match=said):
        offset_per_partition("offsets", value)


def test_json_keeps_no_name_twice() -> None:
    assert json.loads('{"a": 1, "b": {"a": 2}}', object_pairs_hook=each_name_once) == {"a": 1, "b": {"a": 2}}
    with pytest.raises(ValueError, match="'a' is named twice, with 1 and with 2: keep one"):
        json.loads('{"a": 1, "a": 2}', object_pairs_hook=each_name_once)


def test_a_switch_is_true_or_false() -> None:
    assert (yes_or_no("dry_run", True), yes_or_no("dry_run", False)) == (True, False)
    for value in (1, "true", None):
        with pytest.raises(FormError, match=r"dry_run is .*\. Choose true or false\."):
            yes_or_no("dry_run", value)


@pytest.mark.parametrize(("value", "number"), [(None, None), ("", None), (1, 1), ("12", 12)], ids=repr)
def test_a_number_may_be_left_empty(value: Any, number: int | None) -> None:
    assert number_from_one("max_records", value) == number


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "0", "one", "1.5"], ids=repr)
def test_a_number_begins_at_one(value: Any) -> None:
    with pytest.raises(FormError, match=r"max_records is .*\. Write a whole number from 1"):
        number_from_one("max_records", value)
