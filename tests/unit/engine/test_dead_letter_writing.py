from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from letters import FAULT, letters
from plans import plan_of

from airflow_provider_kpipe.contract.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letter_dialects import DIALECTS
from airflow_provider_kpipe.contract.dead_letter_messages import write_raw
from airflow_provider_kpipe.contract.offsets import PartitionRange
from airflow_provider_kpipe.contract.pipeline import KafkaDeadLetter
from kpipe_engine import dead_letter_writing as module
from kpipe_engine.dead_letter_writing import AlikeLetters, SingleLetters, choose_write

MakeMessage = Callable[..., Message]

PLAN = plan_of(PartitionRange(3, 0, 100, None), group="orders-v2")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(told=st.lists(letters(), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_letters_of_one_cause_are_written_as_each_by_itself(
    message: MakeMessage, dialect: Any, told: list[DeadLetter]
) -> None:
    alike, single = AlikeLetters(PLAN, dialect), SingleLetters(PLAN, partial(write_raw, dialect=dialect))
    for letter, other in product(told, told):
        offset, timestamp = letter.source.offset, (1, other.source.timestamp)
        arrived = message(offset, letter.value, key=letter.key, headers=list(letter.headers), timestamp=timestamp)
        # One cause, told in other words.
        fault = replace(letter.fault, message=other.fault.message, stacktrace=other.fault.stacktrace)
        assert alike(arrived, fault) == single(arrived, fault)


def test_what_letters_of_one_cause_have_in_common_is_made_once(
    message: MakeMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[DeadLetter] = []
    monkeypatch.setattr(
        module.Dialect,
        "pattern",
        lambda self, letter, own=module.Dialect.pattern: made.append(letter) or own(self, letter),
    )
    write = choose_write(KafkaDeadLetter("orders.dead"), PLAN)
    for offset in range(5):
        write(message(offset), replace(FAULT, message=f"no amount in {offset}"))
    assert len(made) == 1
    write(message(5), replace(FAULT, exception_class="KeyError"))
    assert len(made) == 2


def test_many_causes_are_all_told(message: MakeMessage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PATTERNS", 3)
    write = choose_write(KafkaDeadLetter("orders.dead"), PLAN)
    for number in range(10):
        written = write(message(number), replace(FAULT, component=f"orders:step_{number}"))
        assert ("kpipe-fault-component", b"orders:step_%d" % number) in written.headers
