from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates
from airflow_provider_kpipe.contract.offsets.limits import Earliest, Explicit, Latest
from airflow_provider_kpipe.contract.redrive.redrive import Selection
from airflow_provider_kpipe.forms.fields import FormError
from airflow_provider_kpipe.forms.redrive import FIELDS, RedriveRequest

NOON, ONE = "2026-01-31T12:00:00+00:00", "2026-01-31T13:00:00Z"
NOON_MS, ONE_MS = 1_769_860_800_000, 1_769_864_400_000
OURS = Selection(pipeline="orders")


def request(**form: Any) -> RedriveRequest:
    return RedriveRequest.from_form(form, pipeline="orders", target="source", max_attempts=3)


def test_a_form_with_nothing_filled_in_is_all_of_the_pipelines_letters_as_the_dag_says() -> None:
    expected = RedriveRequest(OURS, Earliest(), Latest(), "source", 3, each_letter=False, dry_run=False)
    assert request() == expected
    empty = {name: None for name in FIELDS if name not in ("each_letter", "dry_run", "max_attempts")}
    assert request(**empty, dry_run=False) == expected


SELECTED: list[tuple[dict[str, Any], Selection]] = [
    ({"pipeline": "returns"}, Selection("returns")),
    ({"pipeline": " "}, OURS),
    ({"pipeline": "*"}, Selection()),
    ({"exception_class": " KeyError "}, Selection("orders", "KeyError")),
    ({"occurred_from": NOON}, Selection("orders", None, NOON_MS)),
    ({"occurred_until": ONE}, Selection("orders", None, None, ONE_MS)),
    ({"occurred_from": NOON, "occurred_until": ONE}, Selection("orders", None, NOON_MS, ONE_MS)),
    *(
        ({"record": text}, Selection("orders", record=Coordinates("or-ders.v2", 3, 1042)))
        for text in ("or-ders.v2-3-1042", "or-ders.v2:3:1042", "or-ders.v2/3/1042", " or-ders.v2-3-1042 ")
    ),
]


@pytest.mark.parametrize(("form", "selection"), SELECTED, ids=[repr(form) for form, _ in SELECTED])
def test_filled_fields_choose_the_letters(form: dict[str, Any], selection: Selection) -> None:
    assert request(**form).selection == selection


@given(
    topic=st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    between=st.sampled_from("-:/"),
)
@settings(deadline=None)
def test_coordinates_of_any_topic_are_read(topic: str, partition: int, offset: int, between: str) -> None:
    record = request(record=f"{topic}{between}{partition}{between}{offset}").selection.record
    assert record == Coordinates(topic, partition, offset)


def test_offsets_of_the_dead_letter_topic() -> None:
    made = request(start_offsets={"0": 5}, end_offsets='{"0": 9}')
    assert (made.start, made.end) == (Explicit({0: 5}), Explicit({0: 9}))
    assert request(end_offsets={"1": 9}).start == Earliest()


def test_the_form_may_override_the_target_of_the_dag() -> None:
    made = request(target="output", max_attempts="7", each_letter=True, dry_run=True)
    assert (made.target, made.max_attempts, made.each_letter, made.dry_run) == ("output", 7, True, True)
    assert request(max_attempts=None).max_attempts is None


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"patition": 1}, "The field 'patition' is not known. Known are: occurred_from, "),
    ({"occurred_from": "soon"}, "occurred_from is 'soon', which is not a date and time"),
    ({"occurred_from": ONE, "occurred_until": NOON}, "The time ends (2026-01-31T12:00:00+00:00) before it starts"),
    ({"record": "orders-3"}, "record is 'orders-3', which names no record. Write topic, partition and offset"),
    ({"record": "orders-3-" + "9" * 5_000}, "which names no record"),
    ({"record": 5}, "record is 5. Write a name."),
    ({"exception_class": ["KeyError"]}, "exception_class is ['KeyError']. Write a name."),
    ({"start_offsets": "all"}, "start_offsets cannot be read"),
    ({"start_offsets": {"0": 9}, "end_offsets": {"0": 9}}, "Partition 0 ends at 9, which is not after its start 9"),
    ({"target": "back"}, "target is 'back'. Choose source or output."),
    ({"max_attempts": 0}, "max_attempts is 0. Write a whole number from 1"),
    ({"max_attempts": 1.5}, "max_attempts is 1.5"),
    ({"dry_run": "yes"}, "dry_run is 'yes'. Choose true or false."),
    ({"each_letter": None}, "each_letter is None. Choose true or false."),
]


@pytest.mark.parametrize(("form", "said"), REFUSED, ids=[repr(form) for form, _ in REFUSED])
def test_an_impossible_redrive_form_is_refused_in_words_for_people(form: dict[str, Any], said: str) -> None:
    with pytest.raises(FormError) as refusal:
        request(**form)
    assert said in str(refusal.value)


@given(
    form=st.dictionaries(st.sampled_from(FIELDS), st.none() | st.booleans() | st.integers() | st.text() | st.floats())
)
@settings(deadline=None, max_examples=300)
def test_any_input_is_understood_or_refused_with_its_name(form: dict[str, Any]) -> None:
    said = ""
    try:
        assert request(**form).target in ("source", "output")
    except FormError as refusal:
        said = str(refusal)
    assert not said or any(name in said for name in form)
