from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_kpipe.contract.dead_letters.dead_letter import DeadLetter
from airflow_provider_kpipe.contract.dead_letters.dialects import DIALECTS, Dialect
from airflow_provider_kpipe.contract.dead_letters.messages import read_dead_letter, write_envelope, write_raw
from airflow_provider_kpipe.contract.offsets.ranges import PartitionRange
from airflow_provider_kpipe.contract.pipeline.declaration import (
    DeadLetterFormat,
    KafkaDeadLetter,
    KafkaDestination,
    KafkaPipeline,
    KafkaSource,
)
from airflow_provider_kpipe.contract.redrive.redrive import RedriveTarget
from airflow_provider_kpipe.record import SourceMessage
from kpipe_engine.faults import dead_letter_builder as module
from kpipe_engine.faults.dead_letter_builder import CachedDeadLetterBuilder, DeadLetterBuilder, choose_write
from kpipe_engine.redrive.original_record import choose_restore
from tests.kit.letters import FAULT, LETTER, letters, strange_messages
from tests.kit.plans import plan_of

MakeMessage = Callable[..., SourceMessage]

PLAN = plan_of(PartitionRange(3, 0, 100, None), group="orders-v2")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@given(told=st.lists(letters(), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_letters_of_one_cause_are_written_as_each_by_itself(
    message: MakeMessage, dialect: Any, told: list[DeadLetter]
) -> None:
    alike, single = CachedDeadLetterBuilder(PLAN, dialect), DeadLetterBuilder(PLAN, partial(write_raw, dialect=dialect))
    for letter, other in product(told, told):
        offset, timestamp = letter.source.offset, (1, other.source.timestamp)
        arrived = message(offset, letter.value, key=letter.key, headers=list(letter.headers), timestamp=timestamp)
        # One cause, told in other words.
        fault = replace(letter.fault, message=other.fault.message, stacktrace=other.fault.stacktrace)
        assert alike(arrived, fault) == single(arrived, fault)


PIPELINE = KafkaPipeline("orders", KafkaSource("orders"), KafkaDestination("out", keep_partition=True))
MAPPED = KafkaDeadLetter("orders.dead", mapper="dead_letter_kit:as_ticket")
DECLARED = [
    KafkaDeadLetter("orders.dead", format=each, dialect=name)
    for each in get_args(DeadLetterFormat)
    for name in DIALECTS
]


@pytest.mark.parametrize("declared", [*DECLARED, MAPPED], ids=repr)
@given(came=strange_messages())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_record_becomes_a_letter_and_goes_back_whatever_came_with_it(
    message: MakeMessage, declared: KafkaDeadLetter, came: tuple[Any, Any, list[Any]]
) -> None:
    key, value, headers = came
    arrived: Any = message(5, value, key=key, headers=headers)
    written = choose_write(declared, PLAN)(arrived, FAULT)
    letter = read_dead_letter(*written)
    assert letter
    assert (letter.source.partition, letter.source.offset) == (3, 5)
    for target in get_args(RedriveTarget):
        restored = choose_restore(PIPELINE, target)(arrived, letter)
        assert (restored.key(), restored.timestamp()[1] >= -1) == (letter.key, True)
        assert all(isinstance(name, str) for name, _ in restored.headers() or ())


def test_the_record_in_an_envelope_of_another_pipeline_goes_on_whole(message: MakeMessage) -> None:
    untold = replace(LETTER, pipeline="payments", fault=replace(FAULT, exception_class=""))
    key, value, headers = write_envelope(untold, DIALECTS["kpipe"])
    arrived: Any = message(5, value, key=key, headers=list(headers))
    letter = read_dead_letter(*choose_write(KafkaDeadLetter("orders.dead"), PLAN)(arrived, FAULT))
    assert letter
    assert (letter.key, letter.value, letter.headers) == (LETTER.key, LETTER.value, LETTER.headers)
    assert (letter.source.offset, letter.attempt, letter.first) == (5, 1, None)


def test_common_headers_of_one_cause_are_made_once(message: MakeMessage, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DeadLetter] = []
    own = Dialect.pattern

    def pattern(dialect: Dialect, letter: DeadLetter) -> Any:
        made.append(letter)
        return own(dialect, letter)

    monkeypatch.setattr(Dialect, "pattern", pattern)
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
