from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_kpipe.contract.faults.fault import Fault
from kpipe_engine.redrive.original_record import OriginalRecord
from kpipe_engine.redrive.refaulted import RefaultedDeadLetters
from tests.kit.letters import LETTER

FAULT = Fault.of(ValueError("again"), "orders:parse", "segment")


class Letters:
    """Keeps what becomes a dead letter."""

    def __init__(self) -> None:
        self.taken: list[tuple[Any, Fault]] = []

    def take(self, message: Any, fault: Fault) -> None:
        self.taken.append((message, fault))


@pytest.mark.parametrize("is_restored", [True, False])
def test_a_restored_record_becomes_a_letter_of_its_letter(message: Callable[..., Any], is_restored: bool) -> None:
    letters, original = Letters(), message(7, topic="orders.dead")
    faulted = OriginalRecord(original, LETTER, 3, []) if is_restored else original
    RefaultedDeadLetters(letters).take(faulted, FAULT)
    assert letters.taken == [(original, FAULT)]
