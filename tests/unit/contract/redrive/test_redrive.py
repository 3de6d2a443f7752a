from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe import KafkaDeadLetter, KafkaDestination, KafkaPipeline, KafkaSource
from airflow_provider_kpipe.contract.dead_letters.dead_letter import Coordinates, FirstFault
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter, write_envelope, write_raw
from airflow_provider_kpipe.contract.documents import DocumentError
from airflow_provider_kpipe.contract.redrive.redrive import (
    OUTCOMES,
    Redrive,
    RedriveError,
    Selection,
    check_redrive,
    home_of,
    ledger_topic_of,
    occurred_ms,
    redriving,
    written_topics,
)
from tests.kit.letters import LETTER, letters

ALL = Redrive("output", Selection(), None, None, "orders.dead.redriven", "orders")
FAILED_AT = 1_769_860_801_000  # LETTER.fault.occurred_at
WRITTEN_AT = 1_700_000_000_000
SECOND = replace(
    LETTER, source=Coordinates("orders.dead", 1, 9), attempt=2, first=FirstFault("orders", 3, 5, "ValueError", "", "")
)
PIPELINE = KafkaPipeline(
    "orders",
    KafkaSource("orders", conn_id="here"),
    KafkaDestination("out", conn_id="there"),
    dead_letter=KafkaDeadLetter("dead"),
    delivery="at_least_once",
    on_fault="skip",
    max_dead_letters=5,
    max_dead_letter_ratio=0.5,
)
ONE_CLUSTER = replace(PIPELINE, destination=KafkaDestination("out"))

SELECTIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"pipeline": "orders"}, True),
    ({"pipeline": "order"}, False),
    ({"exception_class": "json.decoder.JSONDecodeError"}, True),
    ({"exception_class": "JSONDecodeError"}, True),
    ({"exception_class": "decoder.JSONDecodeError"}, False),
    ({"exception_class": "Error"}, False),
    ({"occurred_from": FAILED_AT}, True),
    ({"occurred_from": FAILED_AT + 1}, False),
    ({"occurred_until": FAILED_AT}, False),
    ({"occurred_until": FAILED_AT + 1}, True),
    ({"occurred_from": FAILED_AT - 5, "occurred_until": FAILED_AT + 5}, True),
    ({"record": Coordinates("orders", 3, 5)}, True),
    ({"record": Coordinates("orders", 3, 6)}, False),
    ({"record": Coordinates("orders", 2, 5)}, False),
    ({"record": Coordinates("other", 3, 5)}, False),
    ({"pipeline": "orders", "exception_class": "KeyError"}, False),
]


@pytest.mark.parametrize(("chosen", "covered"), SELECTIONS, ids=[repr(chosen) for chosen, _ in SELECTIONS])
def test_a_selection_covers_the_letters_of_its_fields(chosen: dict[str, Any], covered: bool) -> None:
    assert Selection(**chosen).covers(LETTER, WRITTEN_AT) is covered


def test_a_record_is_found_by_where_it_was_read_first_and_last() -> None:
    for record in (Coordinates("orders", 3, 5), Coordinates("orders.dead", 1, 9)):
        assert Selection(record=record).covers(SECOND, WRITTEN_AT)
    assert not Selection(record=Coordinates("orders", 1, 9)).covers(SECOND, WRITTEN_AT)


@pytest.mark.parametrize("occurred_at", ["", "yesterday", "9999-12-31T23:59:59.999999-23:59"], ids=repr)
def test_a_letter_that_does_not_say_when_is_as_old_as_its_message(occurred_at: str) -> None:
    moment = occurred_ms(occurred_at, WRITTEN_AT)
    assert moment == WRITTEN_AT or occurred_at.startswith("9999")


def test_a_moment_without_a_zone_is_utc() -> None:
    assert occurred_ms("2026-01-31T12:00:01", 0) == occurred_ms("2026-01-31T12:00:01+00:00", 0) == FAILED_AT


DECISIONS: list[tuple[Any, dict[str, Any], bool, str]] = [
    (LETTER, {}, False, "redriven"),
    (LETTER, {}, True, "already_redriven"),
    (None, {}, False, "unreadable"),
    (None, {}, True, "unreadable"),
    (LETTER, {"selection": Selection(pipeline="x")}, False, "not_selected"),
    (LETTER, {"selection": Selection(pipeline="x")}, True, "not_selected"),
    (LETTER, {"max_attempts": 2}, False, "redriven"),
    (LETTER, {"max_attempts": 1}, False, "exhausted"),
    (LETTER, {"max_attempts": 1, "parking_topic": "p"}, False, "parked"),
    (LETTER, {"max_attempts": 1, "parking_topic": "p"}, True, "already_redriven"),
    (SECOND, {"max_attempts": 2, "parking_topic": "p"}, False, "parked"),
    (SECOND, {"max_attempts": 3, "parking_topic": "p"}, False, "redriven"),
    (LETTER, {"target": "source"}, False, "redriven"),
    (LETTER, {"target": "source", "source_topic": "payments"}, False, "elsewhere"),
    (LETTER, {"target": "output", "source_topic": "payments"}, False, "redriven"),
]


@pytest.mark.parametrize(("letter", "how", "done", "outcome"), DECISIONS, ids=range(len(DECISIONS)))
def test_a_letter_has_the_outcome_of_its_redrive(letter: Any, how: dict[str, Any], done: bool, outcome: str) -> None:
    assert replace(ALL, **how).outcome_of(letter, WRITTEN_AT, done) == outcome


@given(letter=letters(), done=st.booleans(), cap=st.none() | st.integers(1, 20), parking=st.none() | st.just("p"))
@settings(deadline=None, max_examples=200)
def test_every_letter_has_one_outcome_and_what_is_done_is_never_done_again(
    letter: Any, done: bool, cap: int | None, parking: str | None
) -> None:
    outcome = replace(ALL, max_attempts=cap, parking_topic=parking).outcome_of(letter, WRITTEN_AT, done)
    assert outcome in OUTCOMES
    assert (outcome == "already_redriven") is done
    if cap is not None and outcome == "redriven":
        assert letter.attempt < cap


@given(letter=letters(), dialect=st.sampled_from(sorted(DIALECTS)), form=st.sampled_from([write_raw, write_envelope]))
@settings(deadline=None, max_examples=200)
def test_a_letter_is_chosen_alike_in_every_shape_it_is_written_in(letter: Any, dialect: Any, form: Any) -> None:
    key, value, headers = form(letter, DIALECTS[dialect])
    read = read_dead_letter(key, value, headers)
    assert read
    record = Coordinates(letter.source.topic, letter.source.partition, letter.source.offset)
    for chosen in (Selection(record=record), Selection(exception_class=letter.fault.exception_class)):
        assert chosen.covers(read, WRITTEN_AT) == chosen.covers(letter, WRITTEN_AT) is True
    assert home_of(read, letter.source.topic) == letter.source.partition


def test_home_is_where_the_record_was_in_the_source_topic() -> None:
    assert (home_of(LETTER, "orders"), home_of(SECOND, "orders"), home_of(LETTER, "returns")) == (3, 3, None)


def test_a_redrive_comes_back_from_json_as_it_went() -> None:
    made = replace(ALL, selection=Selection("orders", "KeyError", 1, 2, Coordinates("orders", 3, 5)), max_attempts=3)
    assert Redrive.from_json(made.to_json()) == made
    with pytest.raises(DocumentError, match="max_attempts=0"):
        Redrive.from_json({**made.to_json(), "max_attempts": 0})
    with pytest.raises(DocumentError, match=r"Redrive.target is str 'back'; it must be one of 'source', 'output'"):
        Redrive.from_json({**made.to_json(), "target": "back"})


def test_the_pipeline_of_a_redrive_is_on_one_cluster_exactly_once_and_without_a_budget() -> None:
    made = redriving(PIPELINE)
    assert (made.source.conn_id, made.destination_conn_id, made.delivery) == ("there", "there", "exactly_once")
    assert (made.fault_action, made.budget.limits) == ("dead_letter", False)
    assert (made.source.topic, made.segments, made.retry) == ("orders", PIPELINE.segments, PIPELINE.retry)


def test_the_topics_that_a_redrive_writes_to() -> None:
    assert written_topics(PIPELINE, ALL) == ("out", "dead", "orders.dead.redriven")
    back = replace(ALL, target="source", parking_topic="parked")
    assert written_topics(PIPELINE, back) == ("orders", "dead", "orders.dead.redriven", "parked")


def test_a_pipeline_that_can_be_redriven_passes() -> None:
    check_redrive(PIPELINE, "output", None)
    check_redrive(ONE_CLUSTER, "source", "parked")


REFUSED: list[tuple[KafkaPipeline, str, str | None, str]] = [
    (replace(PIPELINE, dead_letter=None), "output", None, "pipeline 'orders' has no dead_letter topic"),
    (PIPELINE, "source", None, "cannot go back to the source; use target='output'"),
    (PIPELINE, "back", None, "target='back': use one of 'source', 'output'"),
    *((ONE_CLUSTER, "output", t, "another use") for t in ("orders", "out", "dead", "dead.redriven")),
]


@pytest.mark.parametrize(("pipeline", "target", "parking", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_an_impossible_redrive_is_refused(pipeline: KafkaPipeline, target: str, parking: str | None, said: str) -> None:
    with pytest.raises(RedriveError, match=said):
        check_redrive(pipeline, target, parking)


def test_a_parking_topic_that_kafka_would_refuse_is_refused() -> None:
    with pytest.raises(ValueError, match="parking topic 'no topic!'"):
        check_redrive(PIPELINE, "output", "no topic!")


def test_a_ledger_topic_that_kafka_would_refuse_is_refused() -> None:
    assert ledger_topic_of(PIPELINE) == "dead.redriven"
    with pytest.raises(RedriveError, match="has more than 249 characters"):
        ledger_topic_of(replace(PIPELINE, dead_letter=KafkaDeadLetter("d" * 245)))
