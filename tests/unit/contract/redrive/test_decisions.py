from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter
from airflow_provider_kpipe.contract.documents import OtherVersionError
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.redrive.decisions import Decisions
from airflow_provider_kpipe.contract.redrive.ledger import LedgerEntry, Place, Redriven, SourceRecord, ledger_key
from airflow_provider_kpipe.contract.redrive.redrive import Outcome, Redrive, Selection
from tests.kit.letters import LETTER, strange_messages

ALL = Redrive("output", Selection(), None, None, "orders.dead.redriven", "orders")
RANGES = [PartitionRange(each, 0, 100, None) for each in range(3)]
OTHER = replace(LETTER, source=replace(LETTER.source, offset=6))

HOWS: list[dict[str, Any]] = [
    {},
    {"target": "source"},
    {"max_attempts": 2, "parking_topic": "parked"},
    {"selection": Selection(occurred_from=0, occurred_until=10**15)},
]


def asked(decisions: Decisions, *places: tuple[int, int], letter: DeadLetter | None = LETTER) -> list[Outcome]:
    return [decisions.outcome_of(letter, Place(*each), 0) for each in places]


def with_entry(place: Place, record: SourceRecord | None) -> Redriven:
    redriven = Redriven("id", RANGES)
    entry = LedgerEntry("earlier", "redriven", "", record)
    redriven.note(place.partition, ledger_key("id", place.offset), entry.to_text().encode())
    return redriven


def test_of_the_letters_of_one_record_the_first_goes_back() -> None:
    decisions = Decisions(ALL, Redriven("id", RANGES))
    assert asked(decisions, (0, 1), (0, 2), (1, 0)) == ["redriven", "duplicate", "duplicate"]
    assert asked(decisions, (0, 3), letter=OTHER) == ["redriven"]
    assert asked(decisions, (0, 4), letter=None) == ["unreadable"]


def test_asked_again_it_says_the_same() -> None:
    decisions = Decisions(ALL, Redriven("id", RANGES))
    assert asked(decisions, (0, 1), (0, 2)) == asked(decisions, (0, 1), (0, 2)) == ["redriven", "duplicate"]


def test_a_letter_of_an_earlier_redrive_is_known_in_any_partition() -> None:
    decisions = Decisions(ALL, with_entry(Place(2, 50), SourceRecord.of(LETTER)))
    assert asked(decisions, (0, 1), (2, 50), (2, 51)) == ["duplicate", "already_redriven", "duplicate"]


def test_an_entry_from_before_records_were_named_counts_from_its_letter_on() -> None:
    decisions = Decisions(ALL, with_entry(Place(0, 1), None))
    assert asked(decisions, (0, 1), (0, 2)) == ["already_redriven", "duplicate"]


def test_a_letter_that_stays_where_it_is_settles_nothing() -> None:
    often = replace(LETTER, attempt=3)
    decisions = Decisions(replace(ALL, max_attempts=3), Redriven("id", RANGES))
    assert asked(decisions, (0, 1), letter=often) == ["exhausted"]
    assert asked(decisions, (0, 2)) == ["redriven"]
    chosen = Decisions(replace(ALL, selection=Selection(exception_class="KeyError")), Redriven("id", RANGES))
    failed = replace(LETTER, fault=replace(LETTER.fault, exception_class="KeyError"))
    assert [*asked(chosen, (0, 1)), *asked(chosen, (0, 2), letter=failed)] == ["not_selected", "redriven"]


def test_a_parked_letter_settles_its_record() -> None:
    decisions = Decisions(replace(ALL, max_attempts=1, parking_topic="parked"), Redriven("id", RANGES))
    assert asked(decisions, (0, 1), (0, 2)) == ["parked", "duplicate"]


def test_each_letter_may_go_back() -> None:
    decisions = Decisions(replace(ALL, each_letter=True), with_entry(Place(2, 50), SourceRecord.of(LETTER)))
    assert asked(decisions, (0, 1), (0, 2), (2, 50)) == ["redriven", "redriven", "already_redriven"]


def test_of_two_that_decide_at_once_the_one_with_the_lower_letter_puts_the_record_back() -> None:
    """The worker of partitions 0 and 2, and that of partition 1."""
    for rival, own in ((Place(1, 9), Place(0, 9)), (Place(1, 9), Place(2, 0)), (Place(0, 9), Place(1, 0))):
        decisions = Decisions(ALL, Redriven("id", RANGES))
        decisions.note_rival(LETTER, replace_offset(rival, 50), 0)
        decisions.note_rival(LETTER, rival, 0)
        assert asked(decisions, own, own) == ["redriven" if own < rival else "duplicate"] * 2


def test_a_rival_that_stays_where_it_is_is_none() -> None:
    decisions = Decisions(replace(ALL, max_attempts=3), Redriven("id", RANGES))
    decisions.note_rival(replace(LETTER, attempt=3), Place(0, 1), 0)
    decisions.note_rival(None, Place(0, 2), 0)
    assert asked(decisions, (1, 0)) == ["redriven"]


@given(message=strange_messages(), how=st.sampled_from(HOWS), written_at=st.integers(-1, 2**63 - 1))
def test_any_letter_gets_a_decision_and_its_entry_is_found_again(
    message: tuple[Any, Any, list[Any]], how: dict[str, Any], written_at: int
) -> None:
    try:
        letter = read_dead_letter(*message)
    except OtherVersionError:
        return
    decisions = Decisions(replace(ALL, **how), Redriven("id", RANGES))
    decisions.note_rival(letter, Place(1, 0), written_at)
    outcome = decisions.outcome_of(letter, Place(0, 1), written_at)
    assert (outcome == "unreadable") is (letter is None)
    if letter is not None:
        record = SourceRecord.of(letter)
        assert with_entry(Place(0, 1), record).letters == {record.digest: Place(0, 1)}


def replace_offset(place: Place, offset: int) -> Place:
    return place._replace(offset=offset)
