from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import (
    MESSAGE_BYTES,
    NAME_BYTES,
    STACKTRACE_BYTES,
    Coordinates,
    DeadLetter,
    FirstFault,
    bounded,
    fitted,
)
from airflow_provider_kpipe.contract.faults.fault import Fault
from tests.kit.letters import ANY_TEXTS, FAULT, LETTER, faults

LONG_TEXTS = st.builds(lambda text, times: text * times, ANY_TEXTS, st.integers(0, 60))


@given(text=LONG_TEXTS, limit=st.integers(0, 200), keep_end=st.booleans())
def test_a_text_that_is_fitted_has_so_many_bytes_at_most(text: str, limit: int, keep_end: bool) -> None:
    fit = fitted(text, limit, keep_end)
    assert len(fit.encode()) <= limit
    sayable = text.encode(errors="replace").decode()
    assert sayable.endswith(fit) if keep_end else sayable.startswith(fit)
    # Nothing but the character at the cut is given up.
    assert fit == sayable or len(fit.encode()) > limit - 4


@pytest.mark.parametrize(
    ("text", "limit", "start", "end"),
    [
        ("abc", 3, "abc", "abc"),
        ("abcd", 3, "abc", "bcd"),
        ("äöü", 3, "ä", "ü"),
        ("帳簿", 5, "帳", "簿"),
        ("a😀b", 4, "a", "b"),
        ("bad \ud800", 10, "bad ?", "bad ?"),
        ("\udfff\ud800", 1, "?", "?"),
    ],
)
def test_a_text_is_cut_between_characters(text: str, limit: int, start: str, end: str) -> None:
    assert (fitted(text, limit), fitted(text, limit, keep_end=True)) == (start, end)


@given(fault=faults(LONG_TEXTS))
def test_texts_of_a_fault_are_bounded_in_bytes(fault: Fault) -> None:
    fit = bounded(fault)
    assert max(len(fit.component.encode()), len(fit.exception_class.encode())) <= NAME_BYTES
    assert len(fit.message.encode()) <= MESSAGE_BYTES
    assert len(fit.stacktrace.encode()) <= STACKTRACE_BYTES
    assert (fit.kind, fit.attempts, fit.occurred_at, fit.retries) == (
        fault.kind,
        fault.attempts,
        fault.occurred_at,
        fault.retries,
    )


def test_a_fault_that_fits_is_not_made_again() -> None:
    assert bounded(FAULT) is FAULT


def test_of_a_trace_the_end_is_kept_and_of_a_message_the_start() -> None:
    fit = bounded(replace(FAULT, message="first " + "ü" * 2_000, stacktrace="ü" * 8_000 + " last"))
    assert fit.message.startswith("first ")
    assert fit.stacktrace.endswith(" last")


def again(previous: DeadLetter) -> DeadLetter:
    """What comes of a letter that is read back and faults once more."""
    letter = replace(
        LETTER,
        key=b"key of the message",
        value=b"value of the message",
        headers=(),
        source=Coordinates("orders.dead", 0, 77, 1_800_000_000_000, "create_time"),
        fault=replace(FAULT, message="again", exception_class="KeyError"),
    )
    return letter.after(previous)


def test_the_record_in_a_letter_stays_the_one_that_was_first_read() -> None:
    second = again(LETTER)
    assert (second.key, second.value, second.headers) == (LETTER.key, LETTER.value, LETTER.headers)
    assert (second.source.topic, second.source.offset) == ("orders.dead", 77)
    assert second.fault.message == "again"


def test_attempts_are_counted_and_the_first_fault_is_kept() -> None:
    second = again(LETTER)
    third = again(second)
    first = FirstFault("orders", 3, 5, FAULT.exception_class, FAULT.message, FAULT.occurred_at)
    assert (LETTER.attempt, second.attempt, third.attempt) == (1, 2, 3)
    assert LETTER.first is None
    assert second.first == third.first == first


def test_the_first_fault_is_bounded_too_whoever_wrote_it() -> None:
    second = again(replace(LETTER, fault=replace(FAULT, message="ü" * 5_000)))
    assert second.first
    assert len(second.first.message.encode()) <= MESSAGE_BYTES
